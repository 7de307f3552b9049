-- retain puts archived tasks into the index of those that may go, if they are not there and nothing keeps them.
-- KEYS meta, archived
-- ARGV upto (id up to which all are in it now, or '': it only ever grows); then the ids
-- Returns how many it put there. An error, and nothing changes, if a key has another type.
local wrong = wrongtype('zset', {K.archived})
if wrong then return wrong end
local added = 0
for i = #A + 1, #ARGV do
  local id = ARGV[i]
  local at = redis.call('ZSCORE', K.archived, id)
  local t = at and redis.pcall('HMGET', K.task(id), 'outcome', 'plan', 'retried_by', 'replayed_by')
  if t and not t.err and outcomes[t[1]] then
    local index = K.archivedAs(t[1])
    local there = redis.pcall('ZSCORE', index, id)
    for _, keeper in ipairs(there and {} or keepers(t[2], t[3], t[4])) do
      there = there or type(redis.pcall('ZSCORE', K.kept(keeper), id)) == 'string'
    end
    if not there then
      redis.pcall('ZADD', index, at, id)
      added = added + 1
    end
  end
end
if A.upto ~= '' and (tonumber(redis.call('HGET', K.meta, 'retained') or '') or 0) < tonumber(A.upto) then
  redis.call('HSET', K.meta, 'retained', A.upto)
end
return added
