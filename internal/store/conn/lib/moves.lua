-- moves(n, kinds) makes n decided moves, each on its own: if the task is where the decision found it, it goes on; if not, nothing
-- of it changes. It looks at all tasks before it writes, and writes the sets once for all of them. What the moves have in common
-- stands once for each kind; k and a are up to where KEYS and ARGV are read.
--   A kind: KEYS set of the state it leaves, of the one it ends in; with a bucket: ready, wake
--     ARGV from, to, event, actor, stamp on the way or '', counter or '', who is woken ('server', 'ended' or ''),
--     name of the bucket the task leaves or comes into or '', marks, writer as in logs
--   A move: KEYS task
--     ARGV id, index of its kind, round, claim or revision, lines for the log or '', with mark s: revision it was decided from,
--     last moment that settles or '', with mark t: deadline or '', rest until or '', with mark d: number of fields to drop, these;
--     number of field values, fields and values
--   Marks: f fenced by the claim, h takes the task from its worker, s settles: the next kind is the one that only reports, n next
--     round, o comes into the bucket, t and d as said, c may cross that a stop is asked for, g and b say good or bad of the node, a goes on to
--     archived.
-- It answers for each move: 1 moved, 2 has been made before, 3 reported, but not settled, -1 stale claim, -2 the task has changed,
-- -3 the hash is missing or damaged, -4 a stop was asked for meanwhile; and the time as the last element. Or {err = ..}, and nothing
-- has changed.
-- readkind reads what moves have in common.
local function readkind()
  local kind = {from = ARGV[a + 1], to = ARGV[a + 2], event = ARGV[a + 3], actor = ARGV[a + 4], via = ARGV[a + 5], count = ARGV[a + 6],
    wake = ARGV[a + 7], bucket = ARGV[a + 8], writer = ARGV[a + 10], left = KEYS[k + 1], entered = KEYS[k + 2], rounds = {}}
  for mark in string.gmatch(ARGV[a + 9], '%l') do kind[mark] = true end
  kind.more, kind.last = kind.s and 2 or 0, kind.a and 'archived' or kind.to
  a, k = a + 10, k + 2
  if kind.bucket ~= '' then
    kind.ready, kind.waiters = KEYS[k + 1], KEYS[k + 2]
    k = k + 2
  end
  return kind
end

-- unfit is an error reply if a key that is written for one of the kinds in use has another type. That of the first set is told by
-- the first write.
local function unfit(kinds)
  local first
  for _, kind in ipairs(kinds) do
    if kind.used then
      first = first or kind.left
      local wrong = wrongtype('zset', {K.due, kind.entered, kind.left ~= first and kind.left or nil})
        or wrongtype('list', {kind.wake == 'server' and K.wakeServer or nil}) or kind.o and wrongtype('set', {K.buckets})
        or kind.ready and (wrongtype('zset', {kind.ready}) or wrongtype('list', {kind.waiters}))
      if wrong then return wrong end
    end
  end
end

-- inround is what a kind of move reads and writes of a round.
local function inround(kind, round)
  local r = kind.rounds[round]
  if r then return r end
  r = {'state', 'round', 'rev', 'log', 'queue', 'plan', next = kind.n and string.format('%d', round + 1) or round}
  if kind.h then
    r[7], r[8], r[9], r[10], r[11], r[12], r[13] = round .. ':claim', round .. ':end', 'cancel_requested', 'program',
      round .. ':node', round .. ':worker', round .. ':resources'
    if kind.s then r[14] = round .. ':incarnation' end
  end
  if kind.count ~= '' then
    r.count = #r + 1
    r[r.count] = kind.count
  end
  if kind.o then
    r.start = #r + 1
    r[r.start], r[r.start + 1] = 'start_after', 'not_before'
  end
  kind.rounds[round] = r
  return r
end

-- current says whether a claim is of this epoch. One without an epoch is of the first.
local function current(claim) return (tonumber(string.match(claim, '^e(%d+)%-') or '') or 1) == epoch end

-- check compares what was read of a task; it writes nothing.
local function check(kind, r, round, fence, t)
  if t.err or not t[1] or not t[2] then return -3 end
  local here = t[1] == kind.from and t[2] == round
  if kind.f then
    if here and t[7] == fence and current(fence) then return t[9] and t[9] ~= '' and not kind.c and -4 or 1 end
    return t[7] == fence and t[8] == kind.event and 2 or -1
  end
  if here and (tonumber(t[3]) or 0) == tonumber(fence) then
    -- What a plan holds back since the decision was made stays.
    if kind.event == 'unblock' and kind.actor == 'server' and t[6] and redis.pcall('HGET', K.plan(t[6]), 'state') ~= 'ready' then
      return -2
    end
    return 1
  end
  return t[1] == kind.last and t[2] == r.next and (tonumber(t[3]) or 0) == following(fence) and 2 or -2
end

-- settled reports whether a report that was accepted goes on to the end of its task: what its worker has decided that from is so
-- still, the revision, the session, the time; nobody has asked for a stop, and no plan waits. A claim without a session has none to lose.
local function settled(m, t)
  local till = tonumber(ARGV[m + 6]) or math.huge
  if tonumber(ARGV[m + 5]) ~= (tonumber(t[3]) or 0) or tonumber(wall.text) > till or t[9] and t[9] ~= '' or t[6] then return false end
  if not t[12] or not t[14] then return true end
  local doc = session(t[12])
  return not doc.err and doc[1] == t[14] and doc[2] ~= 'lost'
end

-- write makes a move in the task's hash, and returns when the task may start.
local function write(m, key, kind, r, t, more)
  local id, round, p, v = ARGV[m], ARGV[m + 2], m + 5, nil
  local rest, drop, dropped = '', 0, 0
  p = p + more
  if kind.t then
    rest = ARGV[p + 1]
    p = p + 2
  end
  if kind.d then
    drop, dropped = p + 1, tonumber(ARGV[p])
    p = p + 1 + dropped
  end
  local n = tonumber(ARGV[p])
  v = {unpack(ARGV, p + 1, p + n)}
  local head = datetime(wall.whole) .. ' - ' .. kind.writer .. ' moving task ' .. id .. ': '
  local lines = ARGV[m + 4] ~= '' and ARGV[m + 4] .. '\n' .. head or head
  if kind.via ~= '' then
    lines = lines .. kind.from .. ' -> ' .. kind.via .. '\n' .. head .. kind.via .. ' -> ' .. kind.to
    v[n + 1], v[n + 2] = round .. ':' .. kind.via, wall.text
    n = n + 2
  else
    lines = lines .. kind.from .. ' -> ' .. kind.to
  end
  if kind.a then
    lines = lines .. '\n' .. head .. kind.to .. ' -> archived'
    v[n + 1], v[n + 2], v[n + 3], v[n + 4] = 'outcome', kind.to, round .. ':archived', wall.text
    n = n + 4
  end
  v[n + 1], v[n + 2], v[n + 3], v[n + 4], v[n + 5], v[n + 6] = 'state', kind.last, 'rev', string.format('%d', following(t[3])), 'log', append(t[4], lines)
  v[n + 7], v[n + 8] = r.next .. ':' .. kind.to, wall.text
  n = n + 8
  local function set(field, value)
    v[n + 1], v[n + 2] = field, value
    n = n + 2
  end
  if kind.n then set('round', r.next) end
  if r.count then set(kind.count, string.format('%d', (tonumber(t[r.count]) or 0) + 1)) end
  if kind.f then set(round .. ':end', kind.event) end
  if rest ~= '' then set('not_before', rest) end
  if kind.bucket ~= '' and r.next == '0' and (kind.o or kind.to == 'blocked') then -- it stamps again what was stamped when the task was made
    local made = redis.call('HMGET', key, 'created', '0:' .. kind.to)
    if made[2] and not made[1] then set('created', made[2]) end
  end
  redis.call('HSET', key, unpack(v))
  if dropped > 0 then redis.call('HDEL', key, unpack(ARGV, drop, drop + dropped - 1)) end
  return kind.o and math.max(tonumber(moment(t[r.start] or '0')) or 0, tonumber(t[r.start + 1]) or 0, tonumber(rest) or 0)
end

local held, tallies, planned, feeding, wakes, filled, ended = holders(), {}, {}, {}, {}, {}, false

-- inplan notes what a move means to the plan of the task: what leaves `freed:`, what is left, and which dependants must hear
-- of an end. It is written once for all moves.
local function inplan(plan, id, key, kind)
  local of = planned[plan] or {moved = {}, ended = {}}
  planned[plan] = of
  if kind.from == 'blocked' then of.moved[#of.moved + 1] = id end
  if kind.wake == 'ended' then
    local t = redis.call('HMGET', key, 'feeds', 'skipped', 'grows')
    of.ended[#of.ended + 1] = {id = id, outcome = kind.to, skipped = t[2] == '1', grows = t[3] == '1'}
    if t[1] == '1' then feeding[#feeding + 1] = 't' .. id end
  elseif kind.to == 'blocked' and redis.pcall('HGET', K.plan(plan), 'state') == 'held' then
    redis.pcall('ZADD', K.freed(plan), id, id)
  end
end

-- note notes what a move means beyond the task.
local function note(id, key, kind, t, round)
  if kind.h and t[12] then held.leave(id, t[12], t[11] or '', t[5] or '', t[13] or nil) end
  if (kind.g or kind.b) and meta_quarantine and meta_quarantine ~= 'off' then learn(id, kind.g, key, t[10], t[11]) end
  if kind.wake == 'ended' then
    local queue = t[5] and t[5] ~= '' and t[5] or DEFAULT_QUEUE
    local of = tallies[queue] or {}
    tallies[queue] = of
    of[kind.to] = (of[kind.to] or 0) + 1
  end
  if t[6] then inplan(t[6], id, key, kind) end
  happened(id, round, kind.from, kind.s and kind.via or kind.to, kind.event, kind.actor, kind.writer)
  if kind.s then happened(id, round, kind.via, kind.to, 'settle', kind.actor, kind.writer) end
  if kind.a then happened(id, round, kind.to, 'archived', 'archive', kind.actor, kind.writer) end
end

-- enter puts a task into the set of its new state, and into its bucket. Where it waits, its score is the time of the move,
-- or that of its next start if that is later.
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

-- leave takes the tasks of a kind that move out of the sets they were in.
local function leave(kind)
  redis.call('ZREM', kind.left, unpack(kind.leaves))
  redis.call('ZREM', K.due, unpack(kind.leaves))
  if not kind.ready or kind.o then return end
  local members = {}
  for i, id in ipairs(kind.leaves) do members[i] = string.char(96 + #id) .. id end
  redis.call('ZREM', kind.ready, unpack(members))
end

-- finish writes to the sets what befell the tasks of a kind.
local function finish(kind)
  if #kind.dues > 0 then redis.call('ZADD', K.due, unpack(kind.dues)) end
  if #kind.comes == 0 then return end
  redis.call('ZADD', kind.entered, unpack(kind.comes))
  if kind.a and meta_retention then redis.pcall('ZADD', K.archivedAs(kind.to), unpack(kind.comes)) end -- see lib/retention.lua
  if kind.wake == 'server' then wakes[K.wakeServer] = true end
  ended = ended or kind.wake == 'ended'
end

-- make makes those of the moves from first to last that check has found to be possible. No task is in two of them.
local function make(first, last, all)
  for _, kind in ipairs(all.kinds) do kind.leaves, kind.comes, kind.dues = {}, {}, {} end
  for i = first, last do
    local leaves = all.kind[i].leaves
    if all.codes[i] == 1 or all.codes[i] == 3 then leaves[#leaves + 1] = ARGV[all[i]] end
  end
  for _, kind in ipairs(all.kinds) do
    if #kind.leaves > 0 then leave(kind) end
  end
  for i = first, last do
    local m, kind, t = all[i], all.kind[i], all.read[i]
    local id, round, code = ARGV[m], ARGV[m + 2], all.codes[i]
    if code == 1 or code == 3 then
      local start = write(m, KEYS[k + i], kind, inround(kind, round), t, code == 3 and 2 or kind.more)
      enter(id, kind, kind.t and ARGV[m + 5] or '', start)
      note(id, KEYS[k + i], kind, t, round)
    elseif code == -3 and type(redis.pcall('ZSCORE', kind.left, id)) == 'string' then -- a server is to look at it
      redis.pcall('ZADD', K.due, wall.text, id)
      token(K.wakeServer)
    end
  end
  for _, kind in ipairs(all.kinds) do finish(kind) end
end

-- inplans writes what the moves mean to plans.
local function inplans()
  --[[lib plans]]
  for id, of in pairs(planned) do
    if #of.moved > 0 then redis.pcall('ZREM', K.freed(id), unpack(of.moved)) end
    local ends
    for _, t in ipairs(of.ended) do ends = sum(ends or {}, t.outcome, t.skipped, 1) end
    local counts = ends and account(id, ends)
    for _, t in ipairs(of.ended) do
      if t.grows then sourced(id, t.id, t.outcome, t.skipped, wall.text) end
    end
    if counts then over(id, wall.text) end
  end
  if #feeding > 0 then signal(wall.text, feeding) end
end

-- conclude writes, once for all moves, what they mean beyond their tasks.
local function conclude()
  held.done()
  for node in pairs(praised) do forget(node) end
  for queue, of in pairs(tallies) do
    for outcome, n in pairs(of) do redis.pcall('HINCRBY', K.tally(queue), outcome, n) end
  end
  if next(planned) then inplans() end
  local new = 0
  for name in pairs(filled) do new = new + redis.call('SADD', K.buckets, name) end -- it may have been pruned
  if new > 0 then -- nobody waits there
    redis.call('HINCRBY', K.meta, 'buckets', new)
    redis.call('PUBLISH', K.rules, '1')
  end
  for list in pairs(wakes) do token(list) end
  if ended then redis.call('PUBLISH', K.changed, '1') end
end

-- skip returns where the next move begins.
local function skip(m, kind)
  local p = m + 5 + kind.more
  if kind.t then p = p + 2 end
  if kind.d then p = p + 1 + tonumber(ARGV[p]) end
  return p + 1 + tonumber(ARGV[p])
end

-- look compares what there is with what move i was decided from.
local function look(all, i)
  local m, kinds, n = a, all.kinds, tonumber(ARGV[a + 1])
  local kind, round = kinds[n], ARGV[m + 2]
  local r = inround(kind, round)
  local t = redis.pcall('HMGET', KEYS[k + i], unpack(r))
  local code = check(kind, r, round, ARGV[m + 3], t)
  a = skip(a, kind)
  if code == 1 and kind.s and not settled(m, t) then kind, code = kinds[n + 1], 3 end
  kind.used = kind.used or code > 0 and code ~= 2
  all[i], all.kind[i], all.read[i], all.codes[i] = m, kind, t, code
end

local function moves(n, kinds)
  now()
  local all, looked, first = {kinds = {}, kind = {}, read = {}, codes = {}}, {}, 1
  for i = 1, kinds do all.kinds[i] = readkind() end
  a = a + 1
  for i = 1, n do
    if looked[ARGV[a]] then -- it moves twice in this call
      for _, kind in ipairs(all.kinds) do kind.used = true end
      local wrong = first == 1 and unfit(all.kinds)
      if wrong then return wrong end
      make(first, i - 1, all)
      looked, first = {}, i
    end
    looked[ARGV[a]] = true
    look(all, i)
  end
  local wrong = first == 1 and unfit(all.kinds)
  if wrong then return wrong end
  make(first, n, all)
  conclude()
  k, a, all.codes[n + 1] = k + n, a - 1, wall.text
  return all.codes
end
