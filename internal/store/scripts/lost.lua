-- lost reads the workers whose lease is over, the longest silent first, and
-- fences them in the same moment: from now on they can neither renew nor claim,
-- so a decision made from this reading only has to be checked by revision.
--
-- KEYS[1] meta   KEYS[2] lease   KEYS[3] set_aside
-- ARGV[1] worker key prefix   ARGV[2] held key prefix   ARGV[3] task key prefix: a worker becomes known here only
-- ARGV[4] default lease   ARGV[5] most workers   ARGV[6] most tasks of each
-- ARGV[7] state whose tasks are held   ARGV[8] state of a lost worker
-- ARGV[9], ARGV[10] for how many seconds the caller has watched, by its own clock, that no heartbeat from before this time was
-- followed by another one: TIME may have stepped, so it alone ends no lease; '' and '' where it has stepped for nobody
-- Returns {now, end of the next lease or '', {{name, incarnation, heartbeat, '' or what is wrong, {task...}}...}, the longest lease for which the caller has not
-- watched long enough or '', by how many microseconds now is ahead of TIME}.
-- A worker without tasks is taken off the list. One whose keys have another type is returned and not touched.
local stamp = now()
local clock = tonumber(stamp)
local lease = published(ARGV[4])
local gone, next, broken, longest = {}, math.huge, 0, 0
local watched = tonumber(ARGV[9]) or math.huge

-- judge fences one worker and returns what is left of it.
local function judge(name, doc, found, stale)
  local worker = ARGV[1] .. name
  forget(ARGV[2] .. name, stale)
  if doc[2] ~= ARGV[8] then
    counted(1)
    redis.call('HSET', worker, 'state', ARGV[8])
  end
  if #found == 0 then
    redis.call('ZREM', KEYS[2], name)
    redis.call('HSET', worker, 'ended', stamp)
  end
end

local function consider(name, beat)
  local doc = redis.pcall('HMGET', ARGV[1] .. name, 'incarnation', 'state', 'lease')
  local allowed = allowance(lease, not doc.err and doc[3])
  local over = tonumber(beat) + allowed
  if over >= clock or allowed > watched then
    next = math.min(next, math.max(over, clock))
    if allowed > watched then longest = math.max(longest, allowed) end
    return
  end
  local kind = redis.call('TYPE', ARGV[2] .. name)
  kind = kind.ok or kind
  if doc.err or kind ~= 'set' and kind ~= 'none' then
    broken = broken + 1
    gone[#gone + 1] = {name, '0', beat, doc.err and 'worker' or 'held', {}}
    return
  end
  local found, stale = rounds(ARGV[2] .. name,
    {name = name, tasks = ARGV[3], running = ARGV[7], aside = KEYS[3]}, tonumber(ARGV[6]))
  judge(name, doc, found, stale)
  gone[#gone + 1] = {name, doc[1] or '0', beat, '', found}
end

local wrong = wrongtype('hash', {3})
if wrong then return wrong end
-- A heartbeat from the future was made before the clock was set back: it counts
-- as made now, else a worker that dies would be alive until then.
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. stamp, '+inf', 'LIMIT', 0, 1000)) do
  redis.call('ZADD', KEYS[2], stamp, name)
end
local last = string.format('%.6f', math.min(clock - lease, tonumber(ARGV[10]) or clock))
local late = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. last, 'WITHSCORES')
for i = 1, #late, 2 do
  if #gone - broken == tonumber(ARGV[5]) then
    next = clock
    break
  end
  consider(late[i], late[i + 1])
end
local head = redis.call('ZRANGEBYSCORE', KEYS[2], last, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if head[2] then next = math.min(next, tonumber(head[2]) + lease) end
return {stamp, next < math.huge and string.format('%.6f', next) or '', gone, longest > 0 and string.format('%.6f', longest) or '', wall.ahead}
