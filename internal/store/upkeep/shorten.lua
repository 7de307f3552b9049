-- shorten removes the oldest entries of the log of changes, up to 1000 of those that are too many.
-- KEYS meta, changes, changesGone
-- ARGV most (how many may stay)
-- Returns how many are too many still.
local wrong = wrongtype('hash', {K.meta}) or wrongtype('list', {K.changes}) or wrongtype('string', {K.changesGone})
if wrong then return wrong end
local over = redis.call('LLEN', K.changes) - tonumber(A.most)
if over <= 0 then return 0 end
local n = math.min(over, 1000)
for _ = 1, n do redis.call('LPOP', K.changes) end
redis.call('SET', K.changesGone, string.format('%d', (tonumber(redis.call('GET', K.changesGone) or '') or 0) + n))
counted(n)
return over - n
