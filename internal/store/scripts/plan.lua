-- plan makes a plan, which is being built: nothing of it runs before it is ready.
--
-- KEYS[1] meta   KEYS[2] plan_id   KEYS[3] request   KEYS[4] plans
-- ARGV[1] prefix of plans   ARGV[2] request TTL in seconds   then fields and values
-- Returns its id. Sent again with the same request: the same, and nothing changes; -id if one of the fields was another one.
local before = redis.call('GET', KEYS[3])
if before then
  for i = 3, #ARGV, 2 do
    local was = redis.pcall('HGET', ARGV[1] .. before, ARGV[i])
    if type(was) == 'string' and was ~= ARGV[i + 1] then return -tonumber(before) end
  end
  return tonumber(before)
end
local wrong = wrongtype('hash', {1}) or wrongtype('string', {2}) or wrongtype('zset', {4})
if wrong then return wrong end
local stamp = now()
local id = (tonumber(redis.call('GET', KEYS[2]) or '') or 0) + 1
if redis.call('EXISTS', ARGV[1] .. id) == 1 then
  return redis.error_reply('ERR plan_id is behind the plans: set it to the highest id there is')
end
redis.call('INCR', KEYS[2])
redis.call('HSET', ARGV[1] .. id, 'state', 'building', 'created', stamp, 'total', '0', 'left', '0', 'bad', '0', unpack(ARGV, 3))
redis.call('ZADD', KEYS[4], stamp, id)
redis.call('SET', KEYS[3], id, 'EX', ARGV[2])
counted(1)
return id
