-- claim moves due tasks from the buckets to one worker, as far as the limits of
-- queues and node allow. Queues take turns, a task each. Within a queue the task
-- with the highest priority goes first, raised by one for each `aging` seconds it
-- has waited, then the older one (order lifo, which has no aging: the newer).
--
-- Dry, as the script `dry` (lib/dry.lua), it decides the same and writes nothing: it answers what keeps one task from being
-- claimed. Queues take turns from that of the task then, and it returns {places left of the queue, of it on the node, of
-- the node ('' without a limit), '1' if the gate of the node is closed, what hindrance says.., '1' if the task would be claimed}.
--
-- KEYS meta, open, running, due, lastClaim, workerDoc, lease, held, node, busyNode, used, full, wakeNode, wakeServer;
--   then for each queue: busyQueue, busyBoth, wakeQueue; then for each bucket: ready, wake
-- ARGV worker, request, most (tasks to claim), from, to (states), grace (where none is published, in seconds),
--   writer (the worker as in logs), incarnation (of its session, '' for none), lost, stopped (states in which a session is over),
--   node, rules (their version, '' for any), buckets (version of their list), maxthreads (most rounds on the node, '' for no limit),
--   resources (of the node: gpu=4,mem=65536), lettered (up to how many pieces are told apart),
--   gate (failures in a row that close that of the node), first (which of the queues with due tasks has the first turn, from 0),
--   queues (their number); then of each: name, most rounds, most rounds on the node ('' for no limit),
--   '1' for lifo, aging in seconds (0: none), number of its buckets, then of each: priority, resources
-- Claim ids are e<epoch>-<request>.<number>.
-- Returns -1, and nothing changes, if the session is over, also because a new epoch has begun; -2 the same, if the rules are older than those in force; else
-- {now, more ('1' or ''), next start or '', {damaged id...}, {task...}, '1' if the list of buckets is newer,
--  {full queue...}, '1' if the node is full, {those of the full queues that have a place on this node...},
--  by how many microseconds now is ahead of TIME};
-- a task is {id, claim id, claimed at, what it got, fields in the order of claimFields in claim.go: the first 13 if it has no others}. Sent again with
-- the same request: the same tasks, as far as they are still held, and nothing
-- changes but the heartbeat. An error, and nothing changes, if a key has another type.
local session = A.incarnation ~= ''
local request = string.format('e%d-%s', epoch, A.request) -- a claim of another epoch does not count
local beat
if session then
  local doc = redis.call('HMGET', K.workerDoc, 'incarnation', 'state', 'epoch')
  if doc[1] ~= A.incarnation or doc[2] == A.lost or doc[2] == A.stopped or (tonumber(doc[3] or '') or 1) ~= epoch then return -1 end
  beat = redis.call('ZSCORE', K.lease, A.worker)
end
-- Read before the first write, since Redis does not undo.
local meta = redis.call('HMGET', K.meta, 'timeout_grace', 'rules', 'buckets', 'quarantine')
local stamp, seconds = now()
local clock = tonumber(stamp)
if dry and tonumber(asked.at) > clock then stamp, clock = asked.at, tonumber(asked.at) end
local most, node = tonumber(A.most), A.node
local order, free = heads(clock, stamp, dry), nil
local budget = most + 100
local got, damaged, more = {}, {}, ''
local grace = tonumber(meta[1] or '')
if not (grace and grace >= 0) then grace = tonumber(A.grace) end -- the comparison also leaves out nan

-- number returns the text of a number that is not negative, 'inf' for every
-- spelling of infinity, or nil.
local function number(text)
  if text == 'inf' or text and string.match(text, '^%d+$') then return text end -- as mostly
  local lower = string.gsub(string.lower(text), '^%+', '')
  if lower == 'inf' or lower == 'infinity' then return 'inf' end
  local n = string.match(text, '^[%d.eE+-]+$') and tonumber(text)
  return n and n >= 0 and n < math.huge and text or nil
end

-- read returns what a worker needs to know of a task, or nil if the hash does
-- not hold what it must. Most tasks have the sixteen fields of their creation only, and are not asked
-- for others: each that is missing is searched for among all that are there.
local function read(id)
  local key = K.task(id)
  local b = redis.pcall('HMGET', key, 'state', 'round', 'start_after', 'end_before', 'timeout', 'fails',
    'timeouts', 'max_fails', 'max_timeouts', 'program', 'source', 'input', 'log', 'id', 'namespace', '0:open')
  if b.err then return nil end
  for i = 1, 12 do
    if not b[i] then return nil end
  end
  for i = 3, 9 do
    b[i] = number(b[i])
    if not b[i] then return nil end
  end
  if not string.match(b[2], '^%d+$') then return nil end
  local t = {b[1], b[2], '', unpack(b, 3, 12)}
  if not (b[13] and b[14] and b[15] and b[16]) or redis.call('HLEN', key) > 16 then
    local more = redis.call('HMGET', key, 'rev'--[[more]])
    t[3] = more[1] or ''
    for i = 2, #more do t[12 + i] = more[i] or '' end
  end
  return t, b[13]
end

local function answer(id, claim, at, allotted, t)
  got[#got + 1] = {id, claim, at, allotted, unpack(t)}
end

local before = redis.call('GET', K.lastClaim)
local again = before and string.match(before, '^%S+') == request
if again then
  local n = 0
  for id in string.gmatch(before, ' (%d+)') do
    n = n + 1
    local claim = request .. '.' .. n
    local t = read(id)
    if t and t[1] == A.to then
      local r = redis.call('HMGET', K.task(id), t[2] .. ':claim', t[2] .. ':running', t[2] .. ':resources')
      if r[1] == claim then answer(id, claim, r[2], r[3] or '', t) end
    end
  end
elseif A.rules ~= '' and (meta[2] or '0') ~= A.rules then
  return -2
end

-- The queues and their buckets, as the arguments say.
local queues = {}
do
  local key = #K + 1
  for i = 1, tonumber(A.queues) do
    local q = {name = arg(), threads = tonumber(arg()), maxthreads = tonumber(arg()), lifo = arg() == '1',
      aging = tonumber(arg()), buckets = {}, busy = KEYS[key], both = KEYS[key + 1], wake = KEYS[key + 2]}
    for b = 1, tonumber(arg()) do
      q.buckets[b] = {priority = tonumber(arg()), demand = arg()}
      q.demands = q.demands or q.buckets[b].demand ~= ''
    end
    queues[i] = q
    key = key + 3
  end
  for _, q in ipairs(queues) do
    for _, b in ipairs(q.buckets) do
      b.ready, b.wake = KEYS[key], KEYS[key + 1]
      key = key + 2
    end
  end
end

-- room is for how many more rounds there is room on the node, as far as the node
-- itself is concerned.
local nodelimit = node ~= '' and tonumber(A.maxthreads) or nil
local room = nodelimit and nodelimit - redis.call('SCARD', K.busyNode) or math.huge
local cap, trial, gated = room, false, false
if meta[4] == 'on' and node ~= '' then
  local n = redis.call('HMGET', K.node, 'run', 'quarantined', 'trial_at')
  if (tonumber(n[1] or '') or 0) >= tonumber(A.gate) or tonumber(n[2] or '') then -- a malformed number counts as missing
    local at = tonumber(n[3] or '') or math.huge
    nodelimit = nodelimit or math.huge
    trial, gated = clock >= at, clock < at
    room = math.min(room, trial and 1 or 0)
    if at > clock then order.next = at end
  end
end

-- places is for how many more rounds of a queue there is room in the fleet, and on
-- the node.
local function places(q)
  if not q.fleet then
    q.fleet = q.threads and q.threads - redis.call('SCARD', q.busy) or math.huge
    q.here = q.maxthreads and node ~= '' and q.maxthreads - redis.call('SCARD', q.both) or math.huge
  end
  return math.min(q.fleet, q.here)
end

-- best is the bucket that a queue offers next. One that finds too little of a
-- resource keeps it: what comes after it in the queue does not get it either.
local function best(q)
  local b = order.best(q)
  if not b or b.demand == '' then return b end
  free = free or resources(K.used, A.resources, tonumber(A.lettered))
  local but, kept = {}, {}
  while b and b.demand ~= '' and free.short(b.demand, kept) do
    but[b], q.short = true, true
    free.keep(b.demand, kept)
    b = order.best(q, but)
  end
  return b
end

-- deadline is the next moment a server must look at the task once it runs.
local function deadline(t)
  if t[5] == 'inf' and t[6] == 'inf' then return nil end
  local limit = t[6] ~= 'inf' and clock + tonumber(t[6]) + grace or math.huge
  local last = t[5] ~= 'inf' and tonumber(moment(t[5])) or math.huge
  return string.format('%.6f', math.min(limit, last))
end

-- What is written of all that was claimed at once: the sets that count it, and the indices by time.
local adds, begun, ends, endless = {}, {}, {}, {}
local function into(set, id)
  local ids = adds[set]
  if ids then ids[#ids + 1] = id else adds[set] = {id} end
end

local function hold(id, t, log, q, b)
  local claim = request .. '.' .. (#got + 1)
  local round, allotted = t[2] .. ':', ''
  t[3] = string.format('%d', following(t[3]))
  local line = datetime(seconds) .. ' - ' .. A.writer .. ' moving task ' .. id .. ': ' .. A.from .. ' -> ' .. A.to
  local v = {'state', A.to, 'rev', t[3], round .. 'worker', A.worker, round .. 'claim', claim,
    round .. A.to, stamp, 'log', append(log, line)}
  local n = #v
  into(q.busy, id)
  if node ~= '' then
    v[n + 1], v[n + 2] = round .. 'node', node
    n = n + 2
    into(K.busyNode, id)
    into(q.both, id)
    if b.demand ~= '' then
      allotted = free.allot(b.demand)
      redis.call('HSET', K.used, id, allotted)
      v[n + 1], v[n + 2] = round .. 'resources', allotted
      n = n + 2
    end
  end
  if session then
    v[n + 1], v[n + 2] = round .. 'incarnation', A.incarnation
    into(K.held, id)
  end
  redis.call('HSET', K.task(id), unpack(v))
  begun[#begun + 1], begun[#begun + 2] = stamp, id
  local due = deadline(t)
  if due then
    ends[#ends + 1], ends[#ends + 2] = due, id
  else
    endless[#endless + 1] = id
  end
  happened(id, t[2], A.from, A.to, 'claim', 'worker', A.worker)
  answer(id, claim, stamp, allotted, t)
end

local function listed()
  for set, ids in pairs(adds) do redis.call('SADD', set, unpack(ids)) end
  redis.call('ZADD', K.running, unpack(begun))
  if #ends > 0 then redis.call('ZADD', K.due, unpack(ends)) end
  if #endless > 0 then redis.call('ZREM', K.due, unpack(endless)) end
end

-- unfit is an error reply if a key that is written, and was not read yet, has
-- another type.
local function unfit()
  local sets, hashes, limited = {K.held}, {}, nodelimit
  if node ~= '' then sets[2] = K.busyNode end
  for _, q in ipairs(queues) do
    sets[#sets + 1] = q.busy
    if node ~= '' then sets[#sets + 1] = q.both end
    limited = limited or q.threads or q.maxthreads or q.demands
  end
  if limited then hashes = {K.used, K.full} end
  return wrongtype('zset', {K.open, K.running, K.due}) or wrongtype('set', sets) or wrongtype('hash', hashes)
end

-- spoilt notes a damaged task, and asks a server to look at it: nobody else meets it any more.
local function spoilt(id)
  damaged[#damaged + 1] = id
  if dry or not redis.call('ZSCORE', K.open, id) then return end
  redis.call('ZADD', K.due, stamp, id)
  token(K.wakeServer)
end

-- try claims the head of a bucket and returns whether it has; what cannot be
-- claimed leaves the bucket, because it is claimed by a foreign client, expired,
-- or damaged. So does what TIME, which has stepped back since, says is too early, until later puts it back.
local early = {}
local function later()
  for _, e in ipairs(early) do
    redis.call('ZADD', e[1], e[2], e[3])
    order.next = math.min(order.next, tonumber(e[2]))
  end
end

local function try(q, b)
  local member = order.pass(b)
  local id = string.sub(member, 2)
  budget = budget - 1
  local t, log = read(id)
  if not t then
    spoilt(id)
    return false
  end
  if t[1] ~= A.from or t[5] ~= 'inf' and wall.truth > tonumber(t[5]) * 1000000 then return false end
  if wall.ahead > 0 and wall.truth < tonumber(t[4]) * 1000000 then
    early[#early + 1] = {b.ready, moment(t[4]), member}
    return false
  end
  if dry then
    if not redis.call('ZSCORE', K.open, id) then return false end
    got[#got + 1] = {id}
    if b.demand ~= '' then free.allot(b.demand) end
  else
    if redis.call('ZREM', K.open, id) == 0 then return false end
    hold(id, t, log, q, b)
  end
  q.fleet, q.here, room = q.fleet - 1, q.here - 1, room - 1
  q.took = true
  return true
end

-- turn gives a queue its turn: one task. It returns whether there was one.
local function turn(q)
  while q.due and budget > 0 and places(q) > 0 do
    local b = best(q)
    if not b then return false end
    if try(q, b) then return true end
  end
  return false
end

local turns = {} -- the queues that take turns: where nothing is due, none is lost
for _, q in ipairs(queues) do
  q.due = order.due(q)
  if q.due then turns[#turns + 1] = q end
end
local due, first = #turns > 0, tonumber(A.first)
local report
if dry then
  local q = queues[asked.queue]
  places(q)
  report = {left(q.fleet), left(q.here), left(cap), gated and '1' or '',
    hindrance(order, queues, q, clock, resources(K.used, A.resources, tonumber(A.lettered)))}
  for i, other in ipairs(turns) do
    if other == q then first = i - 1 end
  end
end
if due and not again then
  local wrong = unfit()
  if wrong then return wrong end
  local took = true
  while took do
    took = false
    for i = 0, #turns - 1 do
      if #got == most or room <= 0 then break end
      if turn(turns[(first + i) % #turns + 1]) then took = true end
    end
  end
  if #got > 0 and not dry then
    listed()
    if trial then -- a probe: how it ends decides, beside whatever else still runs here
      redis.call('HDEL', K.node, 'trial_at')
      redis.call('HSET', K.node, 'probe', got[1][1])
    end
  end
end

if dry then
  report[9] = ''
  for _, t in ipairs(got) do
    if t[1] == string.sub(asked.member, 2) then report[9] = '1' end
  end
  return report
end

-- call wakes who waits for any of the buckets of a queue in which tasks are due.
local function call(q)
  local lists = {}
  for i, b in ipairs(order.waiting(q)) do lists[i] = b.wake end
  if #lists > 1 and #lists <= 1000 and redis.call('EXISTS', unpack(lists)) == #lists then return end -- as mostly
  for _, list in ipairs(lists) do token(list) end
end

-- spare passes on the places that are left of a queue in which this worker has nothing more to
-- do: only the first that became free has woken somebody.
local function spare(q)
  if again or not q.took or room <= 0 or q.here <= 0 or q.fleet <= 0 then return end
  if q.threads then token(q.wake) end
  if nodelimit or q.maxthreads and node ~= '' then token(K.wakeNode) end
end

-- rest says what is left of a queue. It wakes another worker for due tasks that
-- others may claim: one that waits for their bucket, for a place in their queue, or for one on this node. It notes a
-- limit that is reached, so that the next free place wakes a worker that waits for it.
-- It wakes none for what is full.
local full, elsewhere, nodefull = {}, {}, ''
local function rest(q)
  q.short = false
  local can = best(q)
  local left = can or order.best(q)
  if not left then return spare(q) end
  places(q)
  local fleet, here = q.fleet > 0, can ~= nil and room > 0 and q.here > 0
  if not again then
    if not fleet then redis.call('HSET', K.full, 'q:' .. q.name, '1') end
    if node ~= '' and (not here or q.short) then redis.call('HSET', K.full, 'n:' .. node, '1') end
    if fleet and (#got > 0 or not here) then
      call(q)
      if q.threads then token(q.wake) end
    end
    if fleet and here and #got > 0 and (nodelimit or q.maxthreads or q.demands) then token(K.wakeNode) end
  end
  if fleet and here then
    more = '1'
  else
    full[#full + 1] = q.name
    if here then elsewhere[#elsewhere + 1] = q.name end
  end
end
if due then
  for _, q in ipairs(queues) do order.sweep(q) end
  later()
  for _, q in ipairs(queues) do rest(q) end
  if room <= 0 then nodefull = '1' end
end

if #got > 0 and not again then
  local ids = {request}
  for i, t in ipairs(got) do ids[i + 1] = t[1] end
  redis.call('SET', K.lastClaim, table.concat(ids, ' '), 'EX', 86400)
end
if beat then redis.call('ZADD', K.lease, stamp, A.worker) end -- who claims is alive
return {stamp, more, order.next < math.huge and string.format('%.6f', order.next) or '', damaged, got,
  (meta[3] or '0') ~= A.buckets and '1' or '', full, nodefull, elsewhere, wall.ahead}
