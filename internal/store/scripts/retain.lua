-- retain puts archived tasks into the index of those that may go, if they are not there and nothing keeps them.
--
-- KEYS[1] meta   KEYS[2] set of archived tasks
-- ARGV[1] task key prefix   ARGV[2] prefix of the sets of kept tasks
-- ARGV[3] id up to which all are in it now, or '': it only ever grows   then the ids
-- Returns how many it put there. An error, and nothing changes, if a key has another type.
local wrong = wrongtype('zset', {2})
if wrong then return wrong end

local function kept(t)
  for _, keeper in ipairs(keepers(t[2], t[3], t[4])) do
    local is = redis.pcall('ZSCORE', ARGV[2] .. keeper, t.id)
    if type(is) == 'string' then return true end
  end
end

local added = 0
for i = 4, #ARGV do
  local at = redis.call('ZSCORE', KEYS[2], ARGV[i])
  local t = at and redis.pcall('HMGET', ARGV[1] .. ARGV[i], 'outcome', 'plan', 'retried_by', 'replayed_by')
  if t and not t.err and outcomes[t[1]] then
    local index = KEYS[2] .. ':' .. t[1]
    t.id = ARGV[i]
    local there = redis.pcall('ZSCORE', index, t.id)
    if not there and not kept(t) then
      redis.pcall('ZADD', index, at, t.id)
      added = added + 1
    end
  end
end
if ARGV[3] ~= '' and (tonumber(redis.call('HGET', KEYS[1], 'retained') or '') or 0) < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], 'retained', ARGV[3])
end
return added
