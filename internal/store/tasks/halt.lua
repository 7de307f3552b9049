-- halt ends the wait of a worker, and calls off the claim behind it, if that was not carried out. Without a session there is none to
-- note that in.
--
-- KEYS meta, halt, workerDoc
-- ARGV request (of the claim)
-- Returns 1.
if redis.pcall('HEXISTS', K.workerDoc, 'incarnation') == 1 then redis.call('HSET', K.workerDoc, 'halted', A.request) end
token(K.halt)
return 1
