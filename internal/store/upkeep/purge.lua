-- purge removes archived tasks with everything that is theirs, each if nothing has changed since it was read, and counts them. One that
-- something still needs is put among what that keeps.
-- KEYS meta, archived, due, follow, handling, purged, purgedIDs, keepers, plans; then for each task: task, live, dependants, stuck
-- ARGV pause (seconds after which a keeper is looked at); then for each task: id, revision, outcome
-- Returns for each task: 1 purged, 2 it was purged before, 3 something keeps it, 0 it is not archived with that outcome, or not there,
-- and was taken out of the index only, -2 it has changed. An error, and nothing changes, if a key has another type.
local wrong = wrongtype('zset', {K.archived, K.due, K.purgedIDs, K.keepers, K.plans}) or wrongtype('hash', {K.follow, K.handling, K.purged})
for k = #K + 1, #KEYS, 4 do wrong = wrong or wrongtype('stream', {KEYS[k + 1]}) or wrongtype('list', {KEYS[k + 2], KEYS[k + 3]}) end
if wrong then return wrong end
local purged, answer = {}, {}
local _, seconds = now()
local function text(n) return string.format('%d', n) end
local function amount(field) return tonumber(field or '') or 0 end

-- leave counts a task of a plan that goes. With the last of them the plan goes.
local function leave(plan, class)
  local key = K.plan(plan)
  local t = redis.pcall('HMGET', key, 'state', 'purged', class or 'state')
  if t.err or not t[1] then return end
  local n = amount(t[2]) + 1
  redis.call('HSET', key, 'purged', text(n))
  if class then redis.call('HSET', key, class, text(amount(t[3]) + 1)) end
  if t[1] == 'building' or t[1] == 'ready' or t[1] == 'held' then return end -- a job that is not over
  local listed = redis.pcall('LLEN', K.planTasks(plan))
  if type(listed) ~= 'number' or n < listed then return end
  redis.call('DEL', key, K.planTasks(plan), K.freed(plan), K.growth(plan))
  redis.call('ZREM', K.plans, plan)
  redis.pcall('ZREM', K.draining, 'p' .. plan, 'g' .. plan)
end

-- unkey lets a key that a purged task had be given again, at once or once its time is over.
local function unkey(id, queue, key, sum, expires)
  if queue == '' then queue = DEFAULT_QUEUE end
  local place = #queue .. (sum and '#' or '') .. ':' .. queue .. ':' .. (sum or key)
  if redis.pcall('GET', K.submitted(place)) == id then redis.call('EXPIRE', K.submitted(place), text(math.max(0, tonumber(expires) - seconds))) end
end

local function one(id, rev, outcome, k)
  local index = K.archivedAs(outcome)
  local t = redis.pcall('HMGET', KEYS[k], 'state', 'outcome', 'rev', 'plan', 'retried_by', 'replayed_by', 'skipped', 'queue', 'key', 'key_sum', 'key_expires')
  if not t.err and not t[1] then
    local range = redis.call('ZRANGEBYSCORE', K.purgedIDs, id, '+inf', 'LIMIT', '0', '1')[1]
    if range and tonumber(range) <= tonumber(id) then return 2 end
  end
  if t.err or t[1] ~= 'archived' or t[2] ~= outcome or not redis.call('ZSCORE', K.archived, id) then
    redis.pcall('ZREM', index, id)
    return 0
  end
  if amount(t[3]) ~= tonumber(rev) then return -2 end
  for _, keeper in ipairs(keepers(t[4], t[5], t[6])) do
    if keeps(keeper) then
      redis.pcall('ZADD', K.kept(keeper), id, id)
      redis.call('ZADD', K.keepers, 'NX', text(seconds + tonumber(A.pause)), keeper)
      redis.pcall('ZREM', index, id)
      return 3
    end
  end
  redis.call('DEL', KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3])
  redis.call('ZREM', K.archived, id)
  redis.pcall('ZREM', index, id)
  redis.call('ZREM', K.due, id)
  redis.call('HDEL', K.follow, id)
  redis.call('HDEL', K.handling, id)
  redis.call('HINCRBY', K.purged, outcome, 1)
  if tonumber(t[11] or '') then unkey(id, t[8] or '', t[9] or '', t[10], t[11]) end
  if t[4] and t[4] ~= '' then
    redis.pcall('ZREM', K.draining, 't' .. id)
    leave(string.match(t[4], '%d+') or '', not (t[5] and t[5] ~= '') and 'purged:' .. (t[7] == '1' and 'skipped' or outcome))
  end
  purged[#purged + 1] = tonumber(id)
  return 1
end

-- note adds the ids from first to last to those that are gone: ranges, of which neighbours become one, so that they stay few.
local function note(first, last)
  local before = redis.call('ZRANGEBYSCORE', K.purgedIDs, first - 1, first - 1)[1]
  local after = redis.call('ZSCORE', K.purgedIDs, text(last + 1))
  if after then redis.call('ZREM', K.purgedIDs, text(last + 1)) end
  redis.call('ZADD', K.purgedIDs, text(tonumber(after or last)), before or text(first))
end

for i = #A + 1, #ARGV, 3 do
  local n = #answer
  answer[n + 1] = one(ARGV[i], ARGV[i + 1], ARGV[i + 2], #K + 4 * n + 1)
end
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
