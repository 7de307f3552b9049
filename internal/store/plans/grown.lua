-- grown is called when a server has looked at the steps of a plan that are not opened yet. It marks those without tasks as opened or
-- skipped. If there are none, and no nudge came meanwhile, nothing is left to do until the next nudge.
-- KEYS meta, plan, growth
-- ARGV id, nudges (that it knew of), trouble (why steps cannot be opened, or '');
--   then for each step without tasks: index, 'opened' or 'skipped', the task whose lines it was for or ''
-- Returns 1, or 0 if it is to look again. Sent again: the same, and nothing changes.
local wrong = wrongtype('hash', {K.plan, K.growth}) or wrongtype('zset', {K.draining})
if wrong then return wrong end
local t = redis.call('HMGET', K.plan, 'state', 'growing', 'nudges', 'growth_error')
local growing, nothing = amount(t[2]), #ARGV == #A
local finished = growing <= 0 and nothing
if not finished and (t[3] or '0') ~= A.nudges then return 0 end
if nothing then
  local changed
  if finished then
    redis.call('DEL', K.growth)
    changed = redis.call('HDEL', K.plan, 'growing', 'nudges', 'growth_error') > 0
  elseif t[1] == 'ready' and A.trouble ~= (t[4] or '') then
    changed = true
    if A.trouble == '' then redis.call('HDEL', K.plan, 'growth_error') else redis.call('HSET', K.plan, 'growth_error', A.trouble) end
  end
  -- The plan leaves the list, and ends if nothing is left to do.
  if redis.call('ZREM', K.draining, 'g' .. A.id) == 1 or changed then
    counted(1)
    if t[1] then over(A.id, (now())) end
  end
  return 1
end
if t[1] ~= 'ready' then return 0 end
local before = growing
for i = #A + 1, #ARGV, 3 do
  local name = ARGV[i] .. ':'
  if not redis.call('HGET', K.growth, name .. 'state') then
    redis.call('HSET', K.growth, name .. 'state', ARGV[i + 1], name .. 'source', ARGV[i + 2])
    growing = growing - 1
  end
end
if growing < before then
  redis.call('HSET', K.plan, 'growing', string.format('%d', growing))
  counted(1)
end
return 0
