-- steer changes the state of a plan, if it is in one that allows it.
--
-- KEYS[1] meta   KEYS[2] plan:<id>   KEYS[3] growth:<id>
-- ARGV[1] id   ARGV[2] state to go to   ARGV[3] who holds it, '' for nobody   ARGV[4..11] planning (lib/plans.lua)
-- then the states from which it may go there
-- Returns {1, state}, {0, state} if it is there already, or over where it was to be ready, {-1, state} if it cannot, or {-2} if there is no such plan; then
-- nothing changes.
local p = {unpack(ARGV, 4, 11)}
local wrong = misfit('hash', {KEYS[3]})
if wrong then return wrong end
local state = redis.call('HGET', KEYS[2], 'state')
if not state then return {-2} end
-- One that is over has been ready: without tasks it was completed at once.
if state == ARGV[2] or ARGV[2] == 'ready' and (state == 'completed' or state == 'failed') then return {0, state} end
local may = false
for i = 12, #ARGV do may = may or ARGV[i] == state end
if not may then return {-1, state} end
local stamp = now()
redis.call('HSET', KEYS[2], 'state', ARGV[2], ARGV[2], stamp)
if ARGV[3] ~= '' then redis.call('HSET', KEYS[2], 'held_by', ARGV[3]) else redis.call('HDEL', KEYS[2], 'held_by') end
counted(1)
if ARGV[2] == 'cancelled' then
  redis.call('DEL', KEYS[3])
  redis.call('HDEL', KEYS[2], 'growing', 'nudges', 'growth_error')
end
nudge(p, ARGV[1], stamp)
over(p, ARGV[1], stamp)
signal(p, stamp, {'p' .. ARGV[1]})
return {1, redis.call('HGET', KEYS[2], 'state')}
