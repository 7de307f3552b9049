-- first keeps which version of a source the tasks of a plan run that its submission could not pin: that of the worker that says so first.
-- KEYS meta, plan
-- ARGV field, hash (of the worker that asks, or '' if it has none yet)
-- Returns the hash that counts, or '' if nobody has said one. Of a plan that has gone that of the worker. Sent again: the same.
local wrong = wrongtype('hash', {K.plan})
if wrong then return wrong end
local said = redis.call('HGET', K.plan, A.field)
if said or A.hash == '' or redis.call('EXISTS', K.plan) == 0 then return said or A.hash end
redis.call('HSET', K.plan, A.field, A.hash)
counted(1)
return A.hash
