-- watermark says up to which id foreign tasks have been looked for.
--
-- KEYS[1] meta
-- ARGV[1] the watermark the decision was made from   ARGV[2] the new one
-- Returns 1 it is at the new one, 0 it is elsewhere.
local adopted = redis.call('HGET', KEYS[1], 'adopted') or '0'
if tonumber(adopted) == tonumber(ARGV[2]) then return 1 end
if tonumber(adopted) ~= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'adopted', ARGV[2])
return 1
