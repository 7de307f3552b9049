-- halt ends the wait of a worker, and calls off the claim behind it unless that has been carried out. A worker without a session has
-- no record to note that in: only its wait ends. A newer claim that was called off stays so.
-- KEYS meta, halt, workerDoc
-- ARGV request (of the claim)
-- Returns 1.
local doc = redis.pcall('HMGET', K.workerDoc, 'incarnation', 'halted')
if doc[1] and not outrun(A.request, doc[2]) then redis.call('HSET', K.workerDoc, 'halted', A.request) end
token(K.halt)
return 1
