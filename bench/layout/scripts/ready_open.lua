-- ready_open.lua: no buckets; tasks are taken from the state set `open`, as in the original.
local function ready_put(key, score, id) end
local function ready_take(n, now, open, first)
  return redis.call('ZRANGEBYSCORE', open, '-inf', now.stamp, 'LIMIT', 0, n)
end
