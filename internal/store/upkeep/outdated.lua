-- outdated says which archived tasks are to go, oldest first, to the one server at a time that sees to it. Before that it lets go what was
-- kept and is not any longer. No record of a task changes.
-- KEYS meta, archived, keepers
-- ARGV who (asks), turn (seconds for which nobody else gets an answer), most (ids), pause (seconds after which a keeper is looked at
--   again); then for each outcome: its name, most seconds since the task was archived or '', most tasks or '', how many oldest to skip
-- Returns {now, '1' if these are the caller's to see to, {how many of an outcome are to go, when the oldest of them was archived, its
-- ids}...}. Sent again: the same, but for what was let go. An error, and nothing changes, if a key has another type.
local wrong = wrongtype('zset', {K.archived, K.keepers})
for i = #A + 1, #ARGV, 4 do wrong = wrong or wrongtype('zset', {K.archivedAs(ARGV[i])}) end
if wrong then return wrong end
local stamp, seconds = now()
local clock = tonumber(stamp)
local who, till = string.match(redis.call('HGET', K.meta, 'purging') or '', '^(%S+) (%S+)$')
if who and who ~= A.who and tonumber(till) > clock and tonumber(till) <= clock + tonumber(A.turn) then return {stamp, ''} end
redis.call('HSET', K.meta, 'purging', A.who .. ' ' .. string.format('%d', seconds + tonumber(A.turn)))

-- letGo puts a page of what was kept among what may go, and returns how many these were.
local function letGo(keeper)
  local key = K.kept(keeper)
  local page = redis.pcall('ZRANGE', key, 0, 99)
  for _, id in ipairs(page) do
    local at, outcome = redis.call('ZSCORE', K.archived, id), redis.pcall('HGET', K.task(id), 'outcome')
    if at and outcomes[outcome] then redis.pcall('ZADD', K.archivedAs(outcome), at, id) end
  end
  if #page > 0 then redis.call('ZREM', key, unpack(page)) end
  if page.err or redis.call('EXISTS', key) == 0 then redis.call('ZREM', K.keepers, keeper) end
  return #page
end

local room = 100
for _, keeper in ipairs(redis.call('ZRANGEBYSCORE', K.keepers, '-inf', stamp, 'LIMIT', '0', '50')) do
  if room <= 0 then break end
  if keeps(keeper) then
    redis.call('ZADD', K.keepers, string.format('%d', seconds + tonumber(A.pause)), keeper)
  else
    room = room - letGo(keeper)
  end
end

local answer, most = {stamp, '1'}, tonumber(A.most)
for i = #A + 1, #ARGV, 4 do
  local key, age, number, first = K.archivedAs(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local due = age and redis.call('ZCOUNT', key, '-inf', '(' .. string.format('%.6f', clock - age)) or 0
  if number then due = math.max(due, redis.call('ZCARD', key) - number) end
  due = math.max(due - first, 0)
  local oldest = due > 0 and redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or ''
  local ids = due > 0 and most > 0 and redis.call('ZRANGE', key, first, first + math.min(due, most) - 1) or {}
  most = most - #ids
  answer[#answer + 1] = {due, oldest, ids}
end
return answer
