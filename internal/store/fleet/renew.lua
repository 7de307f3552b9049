-- renew is a worker's heartbeat. It counts also when the lease is over, if nobody has given it up: Redis itself may have been away.
-- KEYS meta, workerDoc, lease, held, follow, stop
-- ARGV name, incarnation, lease (where none is published), lost, stopped (states in which a session is over), state, reason, busy,
--   stuck, queues (as JSON)
-- Returns {now, lease, order, {{followed id, since}...}, {id to stop...}, {id whose time is over...}, by how many microseconds now is ahead
-- of TIME}, or -1, and nothing changes, if the session is over. Sent again: the same.
local doc = redis.call('HMGET', K.workerDoc, 'incarnation', 'state', 'pid', 'order', 'epoch')
if doc[1] ~= A.incarnation or doc[2] == A.lost or doc[2] == A.stopped or (tonumber(doc[5] or '') or 1) ~= epoch then return -1 end
local stamp, seconds = now()
local lease = string.format('%.14g', published(A.lease))
local followed, over, stops, overdue = {}, {}, {}, {}
local follow = redis.call('HGETALL', K.follow)
for i = 1, #follow, 2 do
  local till, since = string.match(follow[i + 1], '^(%S+) (%S+)$')
  if (tonumber(till) or 0) < tonumber(stamp) then
    if #over < 1000 then over[#over + 1] = follow[i] end -- unpack has a limit; the next heartbeat goes on
  elseif redis.call('SISMEMBER', K.held, follow[i]) == 1 then
    followed[#followed + 1] = {follow[i], since}
  end
end
for _, member in ipairs(redis.call('SMEMBERS', K.stop)) do
  local id = string.match(member, '%d+$') or ''
  local list = id == member and stops or overdue
  if redis.call('SISMEMBER', K.held, id) == 1 then list[#list + 1] = id end
end
local wrong = wrongtype('zset', {K.lease})
if wrong then return wrong end
if #over > 0 then redis.call('HDEL', K.follow, unpack(over)) end
redis.call('ZADD', K.lease, stamp, A.name)
redis.call('HSET', K.workerDoc, 'state', A.state, 'reason', A.reason, 'busy', A.busy, 'stuck', A.stuck,
  'lease', lease, 'heartbeat', heartbeat(seconds, doc[3] or '0', A.queues))
return {stamp, lease, doc[4] or '', followed, stops, overdue, wall.ahead}
