-- regrow lets the servers look again at steps of a plan that could not be opened. A plan that has failed because of them is ready again.
-- KEYS meta, plan
-- ARGV id
-- Returns 1, or 0 if there are none, or the plan is in another state; then nothing changes. Sent again: the same.
local wrong = wrongtype('hash', {K.plan}) or wrongtype('zset', {K.draining})
if wrong then return wrong end
local t = redis.call('HMGET', K.plan, 'state', 'growing', 'growth_error')
if amount(t[2]) <= 0 or t[1] ~= 'ready' and t[1] ~= 'failed' then return 0 end
if not t[3] then return t[1] == 'ready' and 1 or 0 end
redis.call('HSET', K.plan, 'state', 'ready')
redis.call('HDEL', K.plan, 'ended', 'growth_error')
nudge(A.id, (now()))
counted(1)
return 1
