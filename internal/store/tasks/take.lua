-- take is one step of a manager on its way through ended tasks: it archives those that were handled, gives others back, and grants the next
-- ones, so that this manager alone gives them to its handlers. The fence is the holder in `handling`: an instance archives only what it was
-- granted, and who has none only what no living manager has, and only if the task is as the decision found it. So a grant changes nothing
-- of a task. Who has a lease lives: another manager's heartbeat ends it (keep.lua).
-- KEYS meta, handling, due, wakeServer, archived; then the set of each outcome, then the tasks to archive
-- ARGV instance (or ''), writer (as in logs), event, actor, back (number of ids given back), asks (number of ids asked for), of (place
--   of their outcome); then the number of outcomes, followed by their names in the order of the sets, then the ids given back, those
--   asked for, and for each task to archive: id, place of its outcome, round, revision
-- Returns for each task to archive 1 (archived), 2 (has been before), -2 (it has changed, or is not the instance's any more), -3 (its hash
-- is missing or damaged) or -5 (a manager has it), then for each asked for 1 or, if it cannot be had, 0; or -1, and nothing changes, if the
-- lease is lost. Sent again: the same, with 2 for 1. An error, and nothing changes, if a set has another type.
local me, back, asks = A.instance, tonumber(A.back), tonumber(A.asks)
local outcome = args()
local first = at + back + asks -- ARGV before the tasks to archive
local n = (#ARGV - first) / 4
local ids = {unpack(ARGV, at + 1, first)}
for i = 1, n do ids[back + asks + i] = ARGV[first + 4 * i - 3] end

local holder = redis.call('HMGET', K.handling, '@' .. me, unpack(ids))
local lease = table.remove(holder, 1)
if me ~= '' and not lease then return -1 end
local wrong = n > 0 and wrongtype('zset', {K.due, K.archived, unpack(KEYS, #K + 1, #K + #outcome)})
if wrong then return wrong end
local listed = asks > 0 and redis.call('ZMSCORE', KEYS[#K + tonumber(A.of)], unpack(ids, back + 1, back + asks))

local living = {}
local function lives(instance)
  if living[instance] == nil then living[instance] = redis.call('HEXISTS', K.handling, '@' .. instance) == 1 end
  return living[instance]
end

local stamp, seconds, head
if n > 0 then
  stamp, seconds = now()
  head = datetime(seconds) .. ' - ' .. A.writer .. ' moving task '
end
local function archive(key, id, from, round, rev, who)
  local t = redis.pcall('HMGET', key, 'state', 'round', 'rev', 'log')
  if t.err or not t[1] or not t[2] then return -3 end
  local is, next = tonumber(t[3]) or 0, following(rev)
  if t[1] == 'archived' and t[2] == round and is == next then return 2 end
  if t[1] ~= from or t[2] ~= round or is ~= tonumber(rev) or me ~= '' and who ~= me then return -2 end
  if me == '' and who and lives(who) then return -5 end
  redis.call('HSET', key, 'outcome', from, 'state', 'archived', 'rev', string.format('%d', next), round .. ':archived', stamp,
    'log', append(t[4], head .. id .. ': ' .. from .. ' -> archived'))
  happened(id, round, from, 'archived', A.event, A.actor, A.writer)
  return 1
end

local answer, done, comes, from, free, damaged, granted = {}, {}, {}, {}, {}, {}, {}
for i = 1, n do
  local a = first + 4 * i
  local id, place, who = ARGV[a - 3], tonumber(ARGV[a - 2]), holder[back + asks + i]
  local code = archive(KEYS[#K + #outcome + i], id, outcome[place], ARGV[a - 1], ARGV[a], who)
  if code == 1 then
    done[#done + 1], comes[#comes + 1], comes[#comes + 2] = id, stamp, id
    local gone = from[place] or {}
    from[place], gone[#gone + 1] = gone, id
  elseif code == -3 and redis.call('ZSCORE', KEYS[#K + place], id) then
    damaged[#damaged + 1], damaged[#damaged + 2] = stamp, id
  end
  if who and (who == me or code > 0) then free[#free + 1] = id end -- it is done with them, whatever became of them
  answer[i] = code
end
for place, gone in pairs(from) do
  redis.call('ZREM', KEYS[#K + place], unpack(gone))
  if meta_retention then -- see lib/retention.lua
    local entries = {}
    for i, id in ipairs(gone) do entries[2 * i - 1], entries[2 * i] = stamp, id end
    redis.pcall('ZADD', K.archivedAs(outcome[place]), unpack(entries))
  end
end
if #done > 0 then
  redis.call('ZREM', K.due, unpack(done))
  redis.call('ZADD', K.archived, unpack(comes))
  redis.call('PUBLISH', K.changed, '1')
end
if #damaged > 0 then -- a server is to look at them
  redis.call('ZADD', K.due, unpack(damaged))
  token(K.wakeServer)
end

for i = 1, back do
  if holder[i] == me then free[#free + 1] = ids[i] end
end
for i = 1, asks do
  local who, has = holder[back + i], listed[i] and 1 or 0
  if has == 1 and who ~= me then
    if who and lives(who) then
      has = 0
    else
      granted[#granted + 1], granted[#granted + 2] = ids[back + i], me
    end
  end
  answer[n + i] = has
end
if #free > 0 then redis.call('HDEL', K.handling, unpack(free)) end
if #granted > 0 then redis.call('HSET', K.handling, unpack(granted)) end
return answer
