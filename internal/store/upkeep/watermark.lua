-- watermark says up to which id foreign tasks have been looked for.
-- KEYS meta
-- ARGV from (the watermark the decision was made from), to (the new one)
-- Returns 1 it is at the new one, 0 it is elsewhere.
local adopted = redis.call('HGET', K.meta, 'adopted') or '0'
if tonumber(adopted) == tonumber(A.to) then return 1 end
if tonumber(adopted) ~= tonumber(A.from) then return 0 end
redis.call('HSET', K.meta, 'adopted', A.to)
return 1
