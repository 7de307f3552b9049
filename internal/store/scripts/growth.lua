-- growth keeps those steps of a plan that are opened once the lines of a result are known.
--
-- KEYS[1] meta   KEYS[2] plan:<id>   KEYS[3] growth:<id>   KEYS[4..] the tasks whose lines they are for
-- ARGV[1] the steps   ARGV[2] how many they are
-- Returns 1, 0 if the plan is not being built any more, or has some already, -1 if one of the tasks is not there, or -2 if the plan is not; then
-- nothing changes. Sent again: the same.
local wrong = misfit('hash', KEYS)
if wrong then return wrong end
local state = redis.call('HGET', KEYS[2], 'state')
if not state then return -2 end
if state ~= 'building' then return 0 end
local kept = redis.call('HGET', KEYS[3], 'template')
if kept then return kept == ARGV[1] and 1 or 0 end
for i = 4, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then return -1 end
end
for i = 4, #KEYS do redis.call('HSET', KEYS[i], 'feeds', '1', 'grows', '1') end
redis.call('HSET', KEYS[3], 'template', ARGV[1])
redis.call('HSET', KEYS[2], 'growing', ARGV[2])
counted(1)
return 1
