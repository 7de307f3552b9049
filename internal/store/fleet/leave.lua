-- leave ends the session of a worker that holds nothing.
-- KEYS meta, workerDoc, lease, held, halt, setAside
-- ARGV worker, incarnation, lost, stopped (states of a worker that was lost, or has left), running (state whose tasks are held)
-- Returns 0 left, also if it has left before, -1 the session is over, or how many tasks it holds; then nothing changes.
local doc = redis.call('HMGET', K.workerDoc, 'incarnation', 'state', 'epoch')
if doc[1] ~= A.incarnation or doc[2] == A.lost or (tonumber(doc[3] or '') or 1) ~= epoch then return -1 end
if doc[2] == A.stopped then return 0 end
local found, stale = rounds(K.held, {name = A.worker, running = A.running, aside = K.setAside}, 1000000)
if #found > 0 then return #found end
local wrong = wrongtype('zset', {K.lease}) or wrongtype('list', {K.halt})
if wrong then return wrong end
paged('SREM', K.held, stale)
redis.call('ZREM', K.lease, A.worker)
redis.call('DEL', K.halt)
counted(1)
redis.call('HSET', K.workerDoc, 'state', A.stopped, 'ended', (now()), 'reason', '', 'busy', '0', 'stuck', '0')
return 0
