-- due_one.lua: one index, KEYS[first], scored by the earliest time the server must look. Finite deadlines only.
local function due_open(first, id, end_before)
  if end_before ~= 'inf' then redis.call('ZADD', KEYS[first], end_before, id) end
end
local function due_run(first, id, now, end_before, timeout, lease)
  local at = now.at + lease
  if timeout ~= 'inf' then at = math.min(at, now.at + tonumber(timeout)) end
  if end_before ~= 'inf' then at = math.min(at, tonumber(end_before)) end
  redis.call('ZADD', KEYS[first], string.format('%.6f', at), id)
end
local function due_renew(first, id, now, key, round, lease)
  local f = redis.call('HMGET', key, 'end_before', 'timeout', round .. ':running')
  local at = now.at + lease
  if f[2] ~= 'inf' then at = math.min(at, tonumber(f[3]) + tonumber(f[2])) end
  if f[1] ~= 'inf' then at = math.min(at, tonumber(f[1])) end
  redis.call('ZADD', KEYS[first], string.format('%.6f', at), id)
end
local function due_drop(first, id) redis.call('ZREM', KEYS[first], id) end
