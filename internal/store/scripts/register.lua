-- register gives a worker name its number, which stays with the name.
--
-- KEYS[1] meta   KEYS[2] worker   KEYS[3] worker_id   KEYS[4] worker_id:<name>
-- ARGV[1] name
-- Returns the number.
local known = redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1
local id = redis.call('GET', KEYS[4])
if not id then
  id = redis.call('INCR', KEYS[3])
  redis.call('SET', KEYS[4], id)
end
if not known then redis.call('SADD', KEYS[2], ARGV[1]) end
return tonumber(id)
