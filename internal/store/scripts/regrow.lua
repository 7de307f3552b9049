-- regrow lets the servers look again at steps of a plan that could not be opened. A plan that has failed because of them is ready again.
--
-- KEYS[1] meta   KEYS[2] plan:<id>
-- ARGV[1] id   ARGV[2..9] planning (lib/plans.lua)
-- Returns 1, or 0 if there are none, or the plan is in another state; then nothing changes. Sent again: the same.
local p = {unpack(ARGV, 2, 9)}
local wrong = misfit('hash', {KEYS[2]}) or misfit('zset', {p[7]})
if wrong then return wrong end
local t = redis.call('HMGET', KEYS[2], 'state', 'growing', 'growth_error')
if amount(t[2]) <= 0 or t[1] ~= 'ready' and t[1] ~= 'failed' then return 0 end
if not t[3] then return t[1] == 'ready' and 1 or 0 end
redis.call('HSET', KEYS[2], 'state', 'ready')
redis.call('HDEL', KEYS[2], 'ended', 'growth_error')
nudge(p, ARGV[1], (now()))
counted(1)
return 1
