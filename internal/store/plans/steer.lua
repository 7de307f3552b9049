-- steer changes the state of a plan, if it is in one that allows it.
-- KEYS meta, plan, planTasks, growth, plans
-- ARGV id, to (state), by (who holds it, '' for nobody); then the states from which it may go there
-- Returns {1, state}, {0, state} if it is there already, or over where it was to be ready, {-1, state} if it cannot, or {-2} if there is no
-- such plan; then nothing changes. A job that has no tasks, or of which none is there any more, goes where it
-- would be ready.
local wrong = wrongtype('hash', {K.growth}) or wrongtype('zset', {K.plans})
if wrong then return wrong end
local state = redis.call('HGET', K.plan, 'state')
if not state then return {-2} end
-- One that is over has been ready: without tasks it was completed at once.
if state == A.to or A.to == 'ready' and (state == 'completed' or state == 'failed') then return {0, state} end
local may = false
for i = #A + 1, #ARGV do may = may or ARGV[i] == state end
if not may then return {-1, state} end
local stamp = now()
local job = redis.call('HMGET', K.plan, 'job', 'total', 'purged')
if A.to == 'ready' and job[1] and amount(job[2]) <= amount(job[3]) then
  redis.call('DEL', K.plan, K.planTasks)
  redis.call('ZREM', K.plans, A.id)
  counted(1)
  return {1, 'completed'}
end
redis.call('HSET', K.plan, 'state', A.to, A.to, stamp)
if A.by ~= '' then redis.call('HSET', K.plan, 'held_by', A.by) else redis.call('HDEL', K.plan, 'held_by') end
counted(1)
if A.to == 'cancelled' then
  redis.call('DEL', K.growth)
  redis.call('HDEL', K.plan, 'growing', 'nudges', 'growth_error')
end
nudge(A.id, stamp)
over(A.id, stamp)
signal(stamp, {'p' .. A.id})
return {1, redis.call('HGET', K.plan, 'state')}
