-- order says what an operator wants of a worker, and calls it.
--
-- KEYS[1] meta   KEYS[2] worker:<name>
-- ARGV[1] order, '' for none   ARGV[2] channel of the worker
-- Returns 1, or 0 if nobody has registered under that name.
local doc = redis.call('HMGET', KEYS[2], 'name', 'order')
if not doc[1] then return 0 end
if (doc[2] or '') ~= ARGV[1] then counted(1) end
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[2], 'order')
else
  redis.call('HSET', KEYS[2], 'order', ARGV[1])
end
redis.call('PUBLISH', ARGV[2], '1')
return 1
