-- order says what an operator wants of a worker, and calls it.
-- KEYS meta, workerDoc
-- ARGV order ('' for none), worker
-- Returns 1, or 0 if nobody has registered under that name.
local doc = redis.call('HMGET', K.workerDoc, 'name', 'order')
if not doc[1] then return 0 end
if (doc[2] or '') ~= A.order then counted(1) end
if A.order == '' then redis.call('HDEL', K.workerDoc, 'order') else redis.call('HSET', K.workerDoc, 'order', A.order) end
redis.call('PUBLISH', K.call(A.worker), '1')
return 1
