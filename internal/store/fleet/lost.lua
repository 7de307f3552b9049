-- lost reads the workers whose lease is over, the longest silent first, and fences them in the same moment: from now on they can neither
-- renew nor claim, so a decision made from this reading only has to be checked by revision.
-- KEYS meta, lease, setAside
-- ARGV lease (where none is published), workers (at most), tasks (of each at most, or as many as it can hold), running (state whose tasks
--   are held), lost (state of a lost worker), span, before (how many seconds the caller has watched, by its own clock, that no heartbeat
--   from before this time was followed by another one: TIME may have stepped, so it alone ends no lease; '' and '' where it has not)
-- Returns {now, end of the next lease or '', {{name, incarnation, heartbeat, '' or what is wrong, {task...}, slots}...}, the longest lease
-- for which the caller has not watched long enough or '', by how many microseconds now is ahead of TIME}.
-- A worker without tasks is taken off the list. One whose keys have another type is returned and not touched.
local stamp = now()
local clock, lease, watched = tonumber(stamp), published(A.lease), tonumber(A.span) or math.huge
local gone, next, sound, longest = {}, math.huge, 0, 0

-- consider fences one worker whose lease is over, and notes what is left of it.
local function consider(name, beat)
  local worker = K.workerDoc(name)
  local doc = redis.pcall('HMGET', worker, 'incarnation', 'state', 'lease', 'slots')
  local allowed = allowance(lease, not doc.err and doc[3])
  local over = tonumber(beat) + allowed
  if over >= clock or allowed > watched then
    next = math.min(next, math.max(over, clock))
    if allowed > watched then longest = math.max(longest, allowed) end
    return
  end
  if doc.err or wrongtype('set', {K.held(name)}) then
    gone[#gone + 1] = {name, '0', beat, doc.err and 'worker' or 'held', {}}
    return
  end
  sound = sound + 1
  local found, stale = rounds(K.held(name), {name = name, slots = doc[4], running = A.running, aside = K.setAside}, tonumber(A.tasks))
  gone[#gone + 1] = {name, doc[1] or '0', beat, '', found, doc[4] or ''}
  paged('SREM', K.held(name), stale)
  if doc[2] ~= A.lost then
    counted(1)
    redis.call('HSET', worker, 'state', A.lost)
  end
  if #found == 0 then
    redis.call('ZREM', K.lease, name)
    redis.call('HSET', worker, 'ended', stamp)
  end
end

local wrong = wrongtype('hash', {K.setAside})
if wrong then return wrong end
-- A heartbeat from the future, made before the clock was set back, counts as made now, else a worker that dies would be alive until then.
for _, name in ipairs(redis.call('ZRANGEBYSCORE', K.lease, '(' .. stamp, '+inf', 'LIMIT', 0, 1000)) do
  redis.call('ZADD', K.lease, stamp, name)
end
local last = string.format('%.6f', math.min(clock - lease, tonumber(A.before) or clock))
local late = redis.call('ZRANGEBYSCORE', K.lease, '-inf', '(' .. last, 'WITHSCORES')
for i = 1, #late, 2 do
  if sound == tonumber(A.workers) then
    next = clock
    break
  end
  consider(late[i], late[i + 1])
end
local head = redis.call('ZRANGEBYSCORE', K.lease, last, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if head[2] then next = math.min(next, tonumber(head[2]) + lease) end
return {stamp, next < math.huge and string.format('%.6f', next) or '', gone, longest > 0 and string.format('%.6f', longest) or '',
  wall.ahead}
