-- grant adds an access token.
-- KEYS meta, tokens
-- ARGV id, name, role, sha256 (of its secret), expires, by, most (how many there may be)
-- Returns its record, also if this call has made it before; or, and nothing changes, -1 there is one of that name,
-- -2 one of that id, -3 there are as many as there may be.
local stamp = now()
local wrong = wrongtype('hash', {K.meta, K.tokens})
if wrong then return wrong end
local mine = A.name .. ' ' .. A.role .. ' ' .. A.sha256 .. ' '
local was = redis.call('HGET', K.tokens, A.id)
if was then return string.sub(was, 1, #mine) == mine and was or -2 end
local all, named = redis.call('HVALS', K.tokens), A.name .. ' '
for _, other in ipairs(all) do
  if string.sub(other, 1, #named) == named then return -1 end
end
if #all >= tonumber(A.most) then return -3 end
local record = mine .. stamp .. ' ' .. A.expires .. ' ' .. A.by
redis.call('HSET', K.tokens, A.id, record)
counted(1)
return record
