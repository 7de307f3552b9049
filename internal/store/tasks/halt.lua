-- halt ends the wait of a worker, and calls off the claim behind it unless that has been carried out. A worker without a session has
-- no record to note that in: only its wait ends.
-- KEYS meta, halt, workerDoc
-- ARGV request (of the claim)
-- Returns 1.
if redis.pcall('HEXISTS', K.workerDoc, 'incarnation') == 1 then redis.call('HSET', K.workerDoc, 'halted', A.request) end
token(K.halt)
return 1
