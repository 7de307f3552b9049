-- ready_bucket.lua: one sorted set for each bucket, taken in the order of KEYS.
local function ready_put(key, score, id) redis.call('ZADD', key, score, member(id)) end
local function ready_take(n, now, open, first)
  local ids = {}
  for k = first, #KEYS do
    if #ids == n then break end
    local found = redis.call('ZRANGEBYSCORE', KEYS[k], '-inf', now.stamp, 'LIMIT', 0, n - #ids)
    if #found > 0 then redis.call('ZREM', KEYS[k], unpack(found)) end
    for _, m in ipairs(found) do ids[#ids + 1] = id_of(m) end
  end
  return ids
end
