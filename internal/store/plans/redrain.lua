-- redrain puts back on the lists of the servers what belongs there of a task of a plan, or of the plan, and takes off the set of tasks to
-- be moved what is not to be. No record of a task changes.
-- KEYS meta, plan, freed, task, dependants
-- ARGV plan, task (its id, 0 for the plan)
-- Returns 1. Sent again: the same, and nothing changes.
local id = A.task
local wrong = wrongtype('hash', {K.plan, K.task}) or wrongtype('zset', {K.freed, K.draining}) or wrongtype('list', {K.dependants})
if wrong then return wrong end
local stamp, todo = now(), false

-- lacks says whether servers do not know yet of the work that a member of `draining` stands for. It is for them then.
local function lacks(member)
  local missing = not redis.call('ZSCORE', K.draining, member)
  todo = todo or missing
  return missing
end

if id ~= '0' then
  local t = redis.call('HMGET', K.task, 'state', 'outcome', 'plan', 'waits', 'doomed_by', 'hold')
  local mine, doomed = string.match(t[3] or '', '%d+') == A.plan, t[5] and t[5] ~= ''
  local free = mine and t[1] == 'blocked' and (amount(t[4]) <= 0 or doomed)
  local listed = redis.call('ZSCORE', K.freed, id)
  if free and not t[6] and not listed then
    redis.call('ZADD', K.freed, id, id)
    todo = true
  elseif listed and not free then
    redis.call('ZREM', K.freed, id)
    todo = true
  end
  if mine and ending(t[1], t[2]) and redis.call('EXISTS', K.dependants) == 1 and lacks('t' .. id) then signal(stamp, {'t' .. id}) end
end
if redis.call('HGET', K.plan, 'state') == 'ready' then
  if redis.call('EXISTS', K.freed) == 1 and room(A.plan) > 0 and lacks('p' .. A.plan) then signal(stamp, {'p' .. A.plan}) end
  if id == '0' and amount(redis.call('HGET', K.plan, 'growing')) > 0 and lacks('g' .. A.plan) then nudge(A.plan, stamp) end
end
if todo then counted(1) end
return 1
