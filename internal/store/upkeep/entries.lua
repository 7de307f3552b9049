-- entries reads entries of the log of changes.
-- KEYS meta, changes, changesGone
-- ARGV before (the number of an entry, '' for the end), most
-- Returns the number of the first of them, and up to so many entries that come right before that one, the oldest first.
local gone, last = tonumber(redis.call('GET', K.changesGone) or '') or 0, redis.call('LLEN', K.changes)
if A.before ~= '' then last = math.min(last, tonumber(A.before) - 1 - gone) end
local first = math.max(0, last - tonumber(A.most))
local answer = {gone + first + 1}
if last <= first then return answer end
for i, entry in ipairs(redis.call('LRANGE', K.changes, first, last - 1)) do answer[i + 1] = entry end
return answer
