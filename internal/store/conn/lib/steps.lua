-- Steps: what a move writes of its task, in the hash and in the sets that list it.
local wakes, filled = {}, {} -- lists to wake, and the names of buckets that tasks have come into

-- write makes a move in the task's hash, and returns when the task may start.
local function write(m, key, kind, r, t, more)
  local id, round, p, rest, drop = ARGV[m], ARGV[m + 2], m + 5 + more, '', nil
  if kind.t then rest, p = ARGV[p + 1], p + 2 end
  if kind.d then drop, p = p, p + 1 + tonumber(ARGV[p]) end
  local head = kind.head .. id
  local lines = head .. kind.first
  if kind.second then lines = lines .. '\n' .. head .. kind.second end
  if kind.third then lines = lines .. '\n' .. head .. kind.third end
  if ARGV[m + 4] ~= '' then lines = ARGV[m + 4] .. '\n' .. lines end
  local v = {'state', kind.last, 'rev', string.format('%d', following(t[3])), 'log', append(t[4], lines),
    r.next .. ':' .. kind.to, wall.text, unpack(ARGV, p + 1, p + tonumber(ARGV[p]))}
  if kind.f then v[#v + 1], v[#v + 2] = round .. ':end', kind.event end
  if kind.second then v[#v + 1], v[#v + 2] = round .. ':' .. kind.via, wall.text end
  if kind.third then v[#v + 1], v[#v + 2], v[#v + 3], v[#v + 4] = 'outcome', kind.to, round .. ':archived', wall.text end
  if kind.n then v[#v + 1], v[#v + 2] = 'round', r.next end
  if r.count then v[#v + 1], v[#v + 2] = kind.count, string.format('%d', (tonumber(t[r.count]) or 0) + 1) end
  if rest ~= '' then v[#v + 1], v[#v + 2] = 'not_before', rest end
  if kind.bucket ~= '' and r.next == '0' and (kind.o or kind.to == 'blocked') then -- it stamps again what the making of the task has
    local made = redis.call('HMGET', key, 'created', '0:' .. kind.to)
    if made[2] and not made[1] then v[#v + 1], v[#v + 2] = 'created', made[2] end
  end
  redis.call('HSET', key, unpack(v))
  if drop and ARGV[drop] ~= '0' then redis.call('HDEL', key, unpack(ARGV, drop + 1, drop + tonumber(ARGV[drop]))) end
  return kind.o and math.max(tonumber(moment(t[r.start] or '0')) or 0, tonumber(t[r.start + 1]) or 0, tonumber(rest) or 0)
end

-- leave takes the tasks of a kind that move out of the sets they were in.
local function leave(kind)
  redis.call('ZREM', kind.left, unpack(kind.leaves))
  redis.call('ZREM', K.due, unpack(kind.leaves))
  if not kind.ready or kind.o then return end
  local members = {}
  for i, id in ipairs(kind.leaves) do members[i] = string.char(96 + #id) .. id end
  redis.call('ZREM', kind.ready, unpack(members))
end

-- enter puts a task into the set of its new state, and into its bucket. Where it waits, its score is the time of the move, or that of its
-- next start if that is later.
local function enter(id, kind, deadline, start)
  local score = start and start > tonumber(wall.text) and string.format('%.6f', start) or wall.text
  kind.comes[#kind.comes + 1], kind.comes[#kind.comes + 2] = score, id
  if deadline ~= '' then kind.dues[#kind.dues + 1], kind.dues[#kind.dues + 2] = deadline, id end
  if kind.o then
    local member = string.char(96 + #id) .. id
    redis.call('ZADD', kind.ready, score, member)
    filled[kind.bucket] = true
    -- Waiters must learn of a start that is earlier than all they know.
    if score == wall.text or redis.call('ZRANGE', kind.ready, 0, 0)[1] == member then wakes[kind.waiters] = true end
  end
end
