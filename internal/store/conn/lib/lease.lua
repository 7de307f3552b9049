-- published(default) is the lease in seconds that a server has published, or the default if there is none above 0. allowance(lease,
-- granted) is how long a worker may be silent: at least as long as its last heartbeat was told, on which it relies until the next one.
local function published(default)
  local lease = tonumber(redis.call('HGET', K.meta, 'worker_timeout') or '')
  return lease and lease > 0 and lease or tonumber(default)
end
local function allowance(lease, granted) return math.max(lease, tonumber(granted or '') or 0) end
