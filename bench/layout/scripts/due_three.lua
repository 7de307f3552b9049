-- due_three.lua: an index each for end_before, timeout and lease: KEYS[first], KEYS[first+1], KEYS[first+2].
local function due_open(first, id, end_before)
  if end_before ~= 'inf' then redis.call('ZADD', KEYS[first], end_before, id) end
end
local function due_run(first, id, now, end_before, timeout, lease)
  if timeout ~= 'inf' then
    redis.call('ZADD', KEYS[first + 1], string.format('%.6f', now.at + tonumber(timeout)), id)
  end
  redis.call('ZADD', KEYS[first + 2], string.format('%.6f', now.at + lease), id)
end
local function due_renew(first, id, now, key, round, lease)
  redis.call('ZADD', KEYS[first + 2], 'XX', string.format('%.6f', now.at + lease), id)
end
local function due_drop(first, id)
  for i = 0, 2 do redis.call('ZREM', KEYS[first + i], id) end
end
