-- outdated says which archived tasks are to go, oldest first, to the one server at a time that sees to it. Before that it lets go
-- what was kept and is not any longer. No record of a task changes.
--
-- KEYS[1] meta   KEYS[2] set of archived tasks   KEYS[3] keepers
-- ARGV[1] who asks   ARGV[2] seconds for which nobody else gets an answer   ARGV[3] most ids   ARGV[4] prefix of the sets of kept
-- tasks   ARGV[5] seconds after which a keeper is looked at again   ARGV[6..13] planning (lib/plans.lua)
-- then for each outcome: its name, most seconds since the task was archived or '', most tasks or '', how many of the oldest to skip
-- Returns {now, '1' if these are the caller's to see to, {how many of an outcome are to go, when the oldest of them was archived, its ids}...}
-- in the order of the outcomes. Sent again: the same, but for what was let go. An error, and nothing changes, if a key has another type.
local wrong = wrongtype('zset', {2, 3})
if wrong then return wrong end
for i = 14, #ARGV, 4 do
  local is = redis.call('TYPE', KEYS[2] .. ':' .. ARGV[i])
  is = is.ok or is
  if is ~= 'none' and is ~= 'zset' then return redis.error_reply('WRONGTYPE an index of archived tasks is a ' .. is .. ', want a zset') end
end
local stamp, seconds = now()
local clock = tonumber(stamp)
local who, till = string.match(redis.call('HGET', KEYS[1], 'purging') or '', '^(%S+) (%S+)$')
if who and who ~= ARGV[1] and tonumber(till) > clock and tonumber(till) <= clock + tonumber(ARGV[2]) then return {stamp, ''} end
redis.call('HSET', KEYS[1], 'purging', ARGV[1] .. ' ' .. string.format('%d', seconds + tonumber(ARGV[2])))
local p = {unpack(ARGV, 6, 13)}

-- letGo puts a page of what was kept among what may go, and returns how many these were.
local function letGo(keeper)
  local key = ARGV[4] .. keeper
  local page = redis.pcall('ZRANGE', key, 0, 99)
  for _, id in ipairs(page.err and {} or page) do
    local at, outcome = redis.call('ZSCORE', KEYS[2], id), redis.pcall('HGET', p[1] .. id, 'outcome')
    if at and outcomes[outcome] then redis.pcall('ZADD', KEYS[2] .. ':' .. outcome, at, id) end
  end
  if not page.err and #page > 0 then redis.call('ZREM', key, unpack(page)) end
  if page.err or redis.call('EXISTS', key) == 0 then redis.call('ZREM', KEYS[3], keeper) end
  return #page
end

local room = 100
for _, keeper in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', stamp, 'LIMIT', '0', '50')) do
  if room <= 0 then break end
  if keeps(p, keeper) then
    redis.call('ZADD', KEYS[3], string.format('%d', seconds + tonumber(ARGV[5])), keeper)
  else
    room = room - letGo(keeper)
  end
end

local answer, most = {stamp, '1'}, tonumber(ARGV[3])
for i = 14, #ARGV, 4 do
  local key, due, oldest, ids = KEYS[2] .. ':' .. ARGV[i], 0, '', {}
  if ARGV[i + 1] ~= '' then
    due = redis.call('ZCOUNT', key, '-inf', '(' .. string.format('%.6f', clock - tonumber(ARGV[i + 1])))
  end
  if ARGV[i + 2] ~= '' then due = math.max(due, redis.call('ZCARD', key) - tonumber(ARGV[i + 2])) end
  due = math.max(due - tonumber(ARGV[i + 3]), 0)
  if due > 0 then
    oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or ''
    local first = tonumber(ARGV[i + 3])
    if most > 0 then ids = redis.call('ZRANGE', key, first, first + math.min(due, most) - 1) end
    most = most - #ids
  end
  answer[#answer + 1] = {due, oldest, ids}
end
return answer
