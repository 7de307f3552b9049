-- redrain puts back on the lists of the servers what belongs there of a task of a plan, or of the plan, and takes off the set
-- of tasks to be moved what is not to be. No record of a task changes.
--
-- KEYS[1] meta   KEYS[2] plan:<id>   KEYS[3] its tasks to be moved   KEYS[4] task   KEYS[5] its dependants
-- ARGV[1] id of the plan   ARGV[2] id of the task, 0 for the plan   ARGV[3..10] planning (lib/plans.lua)
-- Returns 1. Sent again: the same, and nothing changes.
local p, id = {unpack(ARGV, 3, 10)}, ARGV[2]
local wrong = misfit('hash', {KEYS[2], KEYS[4]}) or misfit('zset', {KEYS[3], p[7]}) or misfit('list', {KEYS[5]})
if wrong then return wrong end
local stamp, todo = now(), false

if id ~= '0' then
  local t = redis.call('HMGET', KEYS[4], 'state', 'outcome', 'plan', 'waits', 'doomed_by', 'hold')
  local mine, doomed = t[3] == ARGV[1], t[5] and t[5] ~= ''
  local free = mine and t[1] == 'blocked' and (amount(t[4]) <= 0 or doomed)
  local listed = redis.call('ZSCORE', KEYS[3], id)
  if free and not t[6] and not listed then
    redis.call('ZADD', KEYS[3], id, id)
    todo = true
  elseif listed and not free then
    redis.call('ZREM', KEYS[3], id)
    todo = true
  end
  if mine and ending(t[1], t[2]) and redis.call('EXISTS', KEYS[5]) == 1 and not redis.call('ZSCORE', p[7], 't' .. id) then
    signal(p, stamp, {'t' .. id})
    todo = true
  end
end
if redis.call('HGET', KEYS[2], 'state') == 'ready' and redis.call('EXISTS', KEYS[3]) == 1
  and not redis.call('ZSCORE', p[7], 'p' .. ARGV[1]) then
  signal(p, stamp, {'p' .. ARGV[1]})
  todo = true
end
if id == '0' and redis.call('HGET', KEYS[2], 'state') == 'ready' and not redis.call('ZSCORE', p[7], 'g' .. ARGV[1])
  and amount(redis.call('HGET', KEYS[2], 'growing')) > 0 then
  nudge(p, ARGV[1], stamp)
  todo = true
end
if todo then counted(1) end
return 1
