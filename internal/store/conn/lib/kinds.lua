local function readkind()
  local from, to, via = ARGV[a + 1], ARGV[a + 2], ARGV[a + 5]
  local kind = {from = from, to = to, event = ARGV[a + 3], actor = ARGV[a + 4], via = via, count = ARGV[a + 6], wake = ARGV[a + 7],
    bucket = ARGV[a + 8], writer = ARGV[a + 10], left = KEYS[k + 1], entered = KEYS[k + 2], rounds = {}}
  for mark in string.gmatch(ARGV[a + 9], '%l') do kind[mark] = true end
  kind.more, kind.last = kind.s and 2 or 0, kind.a and 'archived' or to
  kind.head = datetime(wall.whole) .. ' - ' .. kind.writer .. ' moving task ' -- of each of its lines in the log
  kind.first = ': ' .. from .. ' -> ' .. (via ~= '' and via or to)
  kind.second = via ~= '' and ': ' .. via .. ' -> ' .. to
  kind.third = kind.a and ': ' .. to .. ' -> archived'
  a, k = a + 10, k + 2
  if kind.bucket ~= '' then
    kind.ready, kind.waiters = KEYS[k + 1], KEYS[k + 2]
    k = k + 2
  end
  return kind
end

-- unfit is an error reply if a key that kinds in use write has another type. That of the first set is told by the first write.
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
  local n = #r
  if kind.count ~= '' then
    n = n + 1
    r.count, r[n] = n, kind.count
  end
  if kind.o then r.start, r[n + 1], r[n + 2] = n + 1, 'start_after', 'not_before' end
  kind.rounds[round] = r
  return r
end
