-- growth keeps those steps of a plan that are opened once the lines of a result are known.
-- KEYS meta, plan, growth; then the tasks whose lines they are for
-- ARGV template (the steps), steps (how many they are)
-- Returns 1, 0 if the plan is not being built any more, or has some already, -1 if one of the tasks is not there, or -2 if the plan is not;
-- then nothing changes. Sent again: the same.
local wrong = wrongtype('hash', KEYS)
if wrong then return wrong end
local state = redis.call('HGET', K.plan, 'state')
if not state then return -2 end
if state ~= 'building' then return 0 end
local kept = redis.call('HGET', K.growth, 'template')
if kept then return kept == A.template and 1 or 0 end
for i = #K + 1, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then return -1 end
end
for i = #K + 1, #KEYS do redis.call('HSET', KEYS[i], 'feeds', '1', 'grows', '1') end
redis.call('HSET', K.growth, 'template', A.template)
redis.call('HSET', K.plan, 'growing', A.steps)
counted(1)
return 1
