-- enter appends an entry to the log of changes.
-- KEYS meta, changes
-- ARGV call (that makes the entry), text
-- Returns 1. Sent again: the same, while the entry is among the newest 100.
local wrong = wrongtype('hash', {K.meta}) or wrongtype('list', {K.changes})
if wrong then return wrong end
local stamp = now()
local mine = A.call .. ' '
for _, entry in ipairs(redis.call('LRANGE', K.changes, -100, -1)) do
  if string.sub(entry, 1, #mine) == mine then return 1 end
end
redis.call('RPUSH', K.changes, mine .. stamp .. ' ' .. A.text)
counted(1)
return 1
