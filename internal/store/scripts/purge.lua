-- purge removes archived tasks with everything that is theirs, each if nothing has changed since it was read, and counts them. One
-- that something still needs is put among what that keeps.
--
-- KEYS[1] meta   KEYS[2] set of archived tasks   KEYS[3] due   KEYS[4] follow   KEYS[5] handling   KEYS[6] purged   KEYS[7] purged_ids
-- KEYS[8] keepers   KEYS[9] plans   then for each task: its hash, its live output, its dependants, those of them that are stuck
-- ARGV[1] prefix of the sets of kept tasks   ARGV[2] seconds after which a keeper is looked at   ARGV[3] prefix of the steps of a plan
-- that are opened later   ARGV[4..11] planning (lib/plans.lua)   then for each task: id, revision, outcome
-- Returns for each task: 1 purged, 2 it was purged before, 3 something keeps it, 0 it is not archived with that outcome, or not there,
-- and was taken out of the index only, -2 it has changed. An error, and nothing changes, if a key has another type.
local wrong = wrongtype('zset', {2, 3, 7, 8, 9}) or wrongtype('hash', {4, 5, 6})
for k = 10, #KEYS, 4 do wrong = wrong or wrongtype('stream', {k + 1}) or wrongtype('list', {k + 2, k + 3}) end
if wrong then return wrong end
local p, purged, answer = {unpack(ARGV, 4, 11)}, {}, {}
local _, seconds = now()

local function gone(id)
  local range = redis.call('ZRANGEBYSCORE', KEYS[7], id, '+inf', 'LIMIT', '0', '1')[1]
  return range and tonumber(range) <= tonumber(id)
end

local function keep(id, keeper, index)
  redis.pcall('ZADD', ARGV[1] .. keeper, id, id)
  redis.call('ZADD', KEYS[8], 'NX', string.format('%d', seconds + tonumber(ARGV[2])), keeper)
  redis.pcall('ZREM', index, id)
  return 3
end

-- leave counts a task of a plan that goes. With the last of them the plan goes.
local function leave(plan, class)
  local key = p[2] .. plan
  local t = redis.pcall('HMGET', key, 'state', 'purged', class or 'state')
  if t.err or not t[1] then return end
  local n = (tonumber(t[2] or '') or 0) + 1
  redis.call('HSET', key, 'purged', string.format('%d', n))
  if class then redis.call('HSET', key, class, string.format('%d', (tonumber(t[3] or '') or 0) + 1)) end
  local listed = redis.pcall('LLEN', p[3] .. plan)
  if type(listed) ~= 'number' or n < listed then return end
  redis.call('DEL', key, p[3] .. plan, p[4] .. plan, ARGV[3] .. plan)
  redis.call('ZREM', KEYS[9], plan)
  redis.pcall('ZREM', p[7], 'p' .. plan, 'g' .. plan)
end

local function one(id, rev, outcome, k)
  local index = KEYS[2] .. ':' .. outcome
  local t = redis.pcall('HMGET', KEYS[k], 'state', 'outcome', 'rev', 'plan', 'retried_by', 'replayed_by', 'skipped')
  if not t.err and not t[1] and gone(id) then return 2 end
  if t.err or t[1] ~= 'archived' or t[2] ~= outcome or not redis.call('ZSCORE', KEYS[2], id) then
    redis.pcall('ZREM', index, id)
    return 0
  end
  if (tonumber(t[3] or '') or 0) ~= tonumber(rev) then return -2 end
  for _, keeper in ipairs(keepers(t[4], t[5], t[6])) do
    if keeps(p, keeper) then return keep(id, keeper, index) end
  end
  redis.call('DEL', KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3])
  redis.call('ZREM', KEYS[2], id)
  redis.pcall('ZREM', index, id)
  redis.call('ZREM', KEYS[3], id)
  redis.call('HDEL', KEYS[4], id)
  redis.call('HDEL', KEYS[5], id)
  redis.call('HINCRBY', KEYS[6], outcome, 1)
  if t[4] and t[4] ~= '' then
    redis.pcall('ZREM', p[7], 't' .. id)
    leave(t[4], not (t[5] and t[5] ~= '') and 'purged:' .. (t[7] == '1' and 'skipped' or outcome))
  end
  purged[#purged + 1] = tonumber(id)
  return 1
end

-- note adds the ids from first to last to those that are gone: ranges, of which neighbours become one, so that there are never
-- more of them than tasks that are left.
local function note(first, last)
  local before = redis.call('ZRANGEBYSCORE', KEYS[7], first - 1, first - 1)[1]
  local after = redis.call('ZSCORE', KEYS[7], string.format('%d', last + 1))
  if after then
    redis.call('ZREM', KEYS[7], string.format('%d', last + 1))
    last = tonumber(after)
  end
  redis.call('ZADD', KEYS[7], string.format('%d', last), before or string.format('%d', first))
end

for i = 12, #ARGV, 3 do answer[#answer + 1] = one(ARGV[i], ARGV[i + 1], ARGV[i + 2], 10 + (i - 12) / 3 * 4) end
table.sort(purged)
local first = 1
for i, id in ipairs(purged) do
  if purged[i + 1] ~= id + 1 then
    note(purged[first], id)
    first = i + 1
  end
end
if #purged > 0 then counted(#purged) end
return answer
