-- moves(n, kinds) makes n decided moves, each on its own: if the task is where the decision found it, it goes on; if not, nothing of it
-- changes. It looks at all tasks before it writes, and writes the sets once for all of them. What the moves have in common stands once for
-- each kind; k and a are up to where KEYS and ARGV are read.
--   A kind: KEYS set of the state it leaves, of the one it ends in; with a bucket: ready, wake
--     ARGV from, to, event, actor, stamp on the way or '', counter or '', who is woken ('server', 'ended' or ''), name of the bucket the
--     task leaves or comes into or '', marks, writer as in logs
--   A move: KEYS task
--     ARGV id, index of its kind, round, claim or revision, lines for the log or '', with mark s: revision it was decided from,
--     last moment that settles or '', with mark t: deadline or '', rest until or '', with mark d: number of fields to drop, these;
--     number of field values, fields and values
--   Marks: f fenced by the claim, h takes the task from its worker, s settles: the next kind is the one that only reports, n next
--     round, o comes into the bucket, t and d as said, c may cross that a stop is asked for, g and b say good or bad of the node, a goes on
--     to archived, p lost a part of its output or files.
-- It answers for each move: 1 moved, 2 has been made before, 3 reported, but not settled, -1 stale claim, -2 the task has changed, -3 the
-- hash is missing or damaged, -4 a stop was asked for meanwhile; and the time as the last element. Or {err = ..}, and nothing has changed.
--[[lib slots]]
--[[lib evidence]]
--[[lib kinds]]
--[[lib fences]]
--[[lib steps]]
--[[lib effects]]
local kinds, begins, kind_of, was, codes = {}, {}, {}, {}, {} -- of each move: where it begins in ARGV, its kind, the task, the answer

-- look compares what there is with what move i was decided from.
local function look(i)
  local m, n, round = a, tonumber(ARGV[a + 1]), ARGV[a + 2]
  local kind = kinds[n]
  local r = inround(kind, round)
  local t = redis.pcall('HMGET', KEYS[k + i], unpack(r))
  local code = check(kind, r, round, ARGV[m + 3], t)
  a = m + 5 + kind.more
  if kind.t then a = a + 2 end
  if kind.d then a = a + 1 + tonumber(ARGV[a]) end
  a = a + 1 + tonumber(ARGV[a])
  if code == 1 and kind.s and not settled(m, t) then kind, code = kinds[n + 1], 3 end
  kind.used = kind.used or code == 1 or code == 3
  begins[i], kind_of[i], was[i], codes[i] = m, kind, t, code
end

-- make makes those of the moves from first to last that check has found to be possible. No task is in two of them.
local function make(first, last)
  for _, kind in ipairs(kinds) do kind.leaves, kind.comes, kind.dues = {}, {}, {} end
  for i = first, last do
    local leaves = kind_of[i].leaves
    if codes[i] == 1 or codes[i] == 3 then leaves[#leaves + 1] = ARGV[begins[i]] end
  end
  for _, kind in ipairs(kinds) do
    if #kind.leaves > 0 then leave(kind) end
  end
  for i = first, last do
    local m, kind, t, code = begins[i], kind_of[i], was[i], codes[i]
    local id, round = ARGV[m], ARGV[m + 2]
    if code == 1 or code == 3 then
      local start = write(m, KEYS[k + i], kind, inround(kind, round), t, code == 3 and 2 or kind.more)
      enter(id, kind, kind.t and ARGV[m + 5] or '', start)
      note(id, KEYS[k + i], kind, t, round)
    elseif code == -3 and type(redis.pcall('ZSCORE', kind.left, id)) == 'string' then -- a server is to look at it
      redis.pcall('ZADD', K.due, wall.text, id)
      token(K.wakeServer)
    end
  end
  for _, kind in ipairs(kinds) do
    if #kind.dues > 0 then redis.call('ZADD', K.due, unpack(kind.dues)) end
    if #kind.comes > 0 then
      redis.call('ZADD', kind.entered, unpack(kind.comes))
      if kind.a and meta_retention then redis.pcall('ZADD', K.archivedAs(kind.to), unpack(kind.comes)) end -- see lib/retention.lua
      if kind.wake == 'server' then wakes[K.wakeServer] = true end
    end
  end
end

local function moves(n, nkinds)
  now()
  for i = 1, nkinds do kinds[i] = readkind() end
  a = a + 1
  local looked, first = {}, 1
  for i = 1, n do
    if looked[ARGV[a]] then -- it moves twice in this call
      for _, kind in ipairs(kinds) do kind.used = true end
      local wrong = first == 1 and unfit(kinds)
      if wrong then return wrong end
      make(first, i - 1)
      looked, first = {}, i
    end
    looked[ARGV[a]] = true
    look(i)
  end
  local wrong = first == 1 and unfit(kinds)
  if wrong then return wrong end
  make(first, n)
  conclude()
  k, a, codes[n + 1] = k + n, a - 1, wall.text
  return codes
end
