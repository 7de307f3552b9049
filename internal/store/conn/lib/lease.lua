-- published is the lease that a server has published, in seconds, or the default if none is valid. allowance is how long a worker may be
-- silent: no less than the lease that its last heartbeat was granted, since it relies on that until the next one.
local function published(default)
  local lease = tonumber(redis.call('HGET', K.meta, 'worker_timeout') or '')
  return lease and lease > 0 and lease or tonumber(default)
end
local function allowance(lease, granted) return math.max(lease, tonumber(granted or '') or 0) end
