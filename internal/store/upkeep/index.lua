-- index puts one task where it belongs: in its bucket, in due, and among the tasks its worker holds under a lease, or out of them. The task
-- itself does not change.
-- KEYS meta, task, due, buckets, ready, wake, lease, held, workerDoc
-- ARGV id, state, round, rev (where the decision found the task), deadline (or ''), score (in the bucket, or '' for not in it),
--   bucket (its name), worker ('' if no session runs the task), incarnation (of that session),
--   runs ('0' if the task does not, '1' if a worker of ours runs it, '' if any other does), queue, node
-- Returns 1 changed, 0 was right already, -2 the task has changed.
local t = redis.call('HMGET', K.task, 'state', 'round', 'rev', A.round .. ':resources')
if t[1] ~= A.state or t[2] ~= A.round or (tonumber(t[3]) or 0) ~= tonumber(A.rev) then return -2 end
local wrong = wrongtype('hash', {K.meta}) or wrongtype('zset', {K.due, K.ready, K.lease}) or wrongtype('set', {K.buckets})
  or wrongtype('list', {K.wake})
if wrong then return wrong end
-- A worker that has registered anew does not hold the round of an older session.
local watched = A.worker == '' or (tonumber(redis.call('HGET', K.workerDoc, 'incarnation')) or 0) > tonumber(A.incarnation)
  or redis.call('SISMEMBER', K.held, A.id) == 1 and redis.call('ZSCORE', K.lease, A.worker)
local stamp = now()
local changed = A.runs == '0' and unhold(K.task, A.round, A.id) or 0
if A.runs == '1' then
  local sets = {counts(A.queue, A.node)}
  for i = 1, A.node ~= '' and 3 or 1 do
    if redis.pcall('SADD', sets[i], A.id) == 1 then changed = 1 end
  end
  if A.node ~= '' and t[4] and t[4] ~= '' and redis.pcall('HSET', K.used(A.node), A.id, t[4]) == 1 then changed = 1 end
end
if not watched then
  redis.call('SADD', K.held, A.id)
  redis.call('ZADD', K.lease, 'NX', stamp, A.worker) -- a worker that lives renews it, any other is lost in time
  changed = 1
end
if A.deadline == '' then
  changed = math.max(changed, redis.call('ZREM', K.due, A.id))
elseif tonumber(redis.call('ZSCORE', K.due, A.id) or '') ~= tonumber(A.deadline) then
  redis.call('ZADD', K.due, A.deadline, A.id)
  changed = 1
end
local m = string.char(96 + #A.id) .. A.id
if A.score == '' then return math.max(changed, redis.call('ZREM', K.ready, m)) end
if redis.call('SADD', K.buckets, A.bucket) == 1 then
  redis.call('HINCRBY', K.meta, 'buckets', 1)
  counted(1)
  changed = 1
end
if redis.call('ZSCORE', K.ready, m) then return changed end
-- It is in line from its start on if one was given, as in open.lua; opened again, from now on at the earliest, as in lib/steps.lua.
local start = tonumber(A.score)
redis.call('ZADD', K.ready, (A.round == '0' and start > 0 or start > tonumber(stamp)) and A.score or stamp, m)
if start <= tonumber(stamp) then token(K.wake) end
return 1
