-- register makes a worker known under its name and begins its lease. Who has the name keeps it, however long it has been silent by the
-- clock of Redis: that runs on while Redis is away, and may jump. What frees a name is a server's verdict (state lost), a clean leave, or a
-- caller who knows the holder's incarnation to be dead.
-- KEYS meta, worker, workerIDs, workerID, workerDoc, lease, held, halt, buckets, setAside, nodes, stop
-- ARGV name, replaces (incarnation known to be dead, or 0), identity, lease (where none is published),
--   running (state whose tasks are held), most (tasks to return, or as many as it can hold), ready, lost, stopped (states of a new worker,
--   a lost one, and one that has left), drain (order that stays), bucket (of the default one), pid, node, fields (their number); then these
-- Returns {'registered', now, id, incarnation, lease, order}; {'taken', now, heartbeat, allowance, fields and values of the holder} and
-- nothing changes; or {'former', now, {task...}, slots}: an earlier session holds tasks still. Then it can neither renew nor claim any
-- more, and nothing else changes. Sent again by the same identity: the same. If the entry in lease was deleted, the name is free.
local stamp, seconds = now()
local lease = published(A.lease)
local doc = redis.call('HMGET', K.workerDoc, 'incarnation', 'state', 'identity', 'order', 'lease', 'epoch', 'slots')
local beat = redis.call('ZSCORE', K.lease, A.name)
local incarnation = tonumber(doc[1]) or 0
local holds = beat and doc[2] and doc[2] ~= A.lost and doc[2] ~= A.stopped
local id = redis.call('GET', K.workerID)
if not doc[1] then incarnation = tonumber(redis.call('HGET', K.meta, 'incarnations') or '') or 0 end -- see dismiss
local former_epoch = (tonumber(doc[6] or '') or 1) ~= epoch -- its session is over, and it may register anew
if holds and incarnation ~= tonumber(A.replaces) and not (former_epoch and doc[3] == A.identity) then
  if doc[3] == A.identity then return {'registered', stamp, id, string.format('%d', incarnation), doc[5], doc[4] or ''} end
  return {'taken', stamp, beat, string.format('%.14g', allowance(lease, doc[5])), redis.call('HGETALL', K.workerDoc)}
end

local former, stale = rounds(K.held, {name = A.name, slots = doc[7], running = A.running, aside = K.setAside}, tonumber(A.most))
local wrong = wrongtype('hash', {K.meta}) or wrongtype('set', {K.worker, K.buckets, K.nodes, K.stop})
  or wrongtype('string', {K.workerIDs}) or wrongtype('list', {K.halt})
if wrong then return wrong end
paged('SREM', K.held, stale)
if #former > 0 then
  redis.call('HSET', K.workerDoc, 'state', A.lost)
  redis.call('ZADD', K.lease, 'NX', stamp, A.name)
  return {'former', stamp, former, doc[7] or ''}
end

if not id then
  id = string.format('%d', redis.call('INCR', K.workerIDs))
  redis.call('SET', K.workerID, id)
end
-- In each epoch they begin at another million, so that a claim of a former session never fits a new one.
incarnation = string.format('%d', math.max(incarnation, (epoch - 1) * 1000000) + 1)
lease = string.format('%.14g', lease)
local v = {'id', id, 'name', A.name, 'incarnation', incarnation, 'identity', A.identity, 'pid', A.pid, 'state', A.ready,
  'epoch', string.format('%d', epoch), 'started', stamp, 'lease', lease, 'heartbeat', heartbeat(seconds, A.pid, '[]')}
local order = doc[4] == A.drain and doc[4] or ''
if order ~= '' then v[#v + 1], v[#v + 2] = 'order', order end
for i = #A + 1, #A + tonumber(A.fields) do v[#v + 1] = ARGV[i] end
counted(1)
redis.call('DEL', K.workerDoc, K.halt, K.stop)
redis.call('HSET', K.workerDoc, unpack(v))
redis.call('ZADD', K.lease, stamp, A.name)
redis.call('SADD', K.worker, A.name)
if A.node ~= '' then redis.call('SADD', K.nodes, A.node) end
if redis.call('SADD', K.buckets, A.bucket) == 1 then redis.call('HINCRBY', K.meta, 'buckets', 1) end
return {'registered', stamp, id, incarnation, lease, order}
