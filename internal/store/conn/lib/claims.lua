-- claims(dry) moves due tasks from the buckets to one worker, as far as the limits of queues and node allow; turn.lua says how it is
-- called. Dry (lib/dry.lua), it decides the same and writes nothing.
local request = string.format('e%d-%s', epoch, A.request) -- a claim of another epoch does not count

-- number returns the text of a number that is not negative, 'inf' for every
-- spelling of infinity, or nil.
local function number(text)
  if text == '0' or text == 'inf' or text and string.match(text, '^%d+$') then return text end -- as mostly
  local lower = string.gsub(string.lower(text), '^%+', '')
  if lower == 'inf' or lower == 'infinity' then return 'inf' end
  local n = string.match(text, '^[%d.eE+-]+$') and tonumber(text)
  return n and n >= 0 and n < math.huge and text or nil
end

-- read returns what a worker needs to know of a task, or nil if the hash does
-- not hold what it must. Most tasks have the fields of their creation only, and are not asked
-- for others: each that is missing is searched for among all that are there.
local function read(id)
  local key = K.task(id)
  local b = redis.pcall('HMGET', key, 'state', 'round', 'start_after', 'end_before', 'timeout', 'fails',
    'timeouts', 'max_fails', 'max_timeouts', 'program', 'source', 'input', 'log', 'id', 'namespace', '0:open', 'archive')
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
  t[14] = b[17] or ''
  if not (b[13] and b[14] and b[15] and b[16]) or redis.call('HLEN', key) > (b[17] and 17 or 16) then
    local more = redis.call('HMGET', key, 'rev'--[[more]])
    t[3] = more[1] or ''
    for i = 2, #more do t[13 + i] = more[i] or '' end
  end
  return t, b[13]
end

-- repeated are the tasks that a former call of the same request claimed, as far as they are still held.
local function repeated(before)
  local got, n = {}, 0
  for id in string.gmatch(before, ' (%d+)') do
    n = n + 1
    local claim = request .. '.' .. n
    local t = read(id)
    if t and t[1] == 'running' then
      local r = redis.call('HMGET', K.task(id), t[2] .. ':claim', t[2] .. ':running', t[2] .. ':resources')
      if r[1] == claim then got[#got + 1] = {id, claim, r[2], r[3] or '', unpack(t)} end
    end
  end
  return got
end

-- candidates are the queues and their buckets, as the arguments say.
local function candidates()
  local queues, buckets = {}, k + 3 * tonumber(A.queues)
  for i = 1, tonumber(A.queues) do
    local q = {name = ARGV[a + 1], threads = tonumber(ARGV[a + 2]), maxthreads = tonumber(ARGV[a + 3]), lifo = ARGV[a + 4] == '1',
      aging = tonumber(ARGV[a + 5]), buckets = {}, busy = KEYS[k + 1], both = KEYS[k + 2], wake = KEYS[k + 3]}
    local n = tonumber(ARGV[a + 6])
    a, k = a + 6, k + 3
    for b = 1, n do
      q.buckets[b] = {priority = tonumber(ARGV[a + 1]), demand = ARGV[a + 2], ready = KEYS[buckets + 1], wake = KEYS[buckets + 2]}
      q.demands = q.demands or ARGV[a + 2] ~= ''
      a, buckets = a + 2, buckets + 2
    end
    queues[i] = q
  end
  return queues
end

-- place is what there is room for on the node, as far as the node itself is concerned.
local function place(c)
  c.limit = A.node ~= '' and tonumber(A.maxthreads) or nil
  c.room = c.limit and c.limit - redis.call('SCARD', K.busyNode) or math.huge
  c.cap = c.room
  if meta_quarantine ~= 'on' or A.node == '' then return end
  local n = redis.call('HMGET', K.node, 'run', 'quarantined', 'trial_at')
  if (tonumber(n[1] or '') or 0) < GATE_RUN and not tonumber(n[2] or '') then return end -- a malformed number counts as missing
  local at = tonumber(n[3] or '') or math.huge
  c.limit = c.limit or math.huge
  c.trial, c.gated = c.clock >= at, c.clock < at
  c.room = math.min(c.room, c.trial and 1 or 0)
  if at > c.clock then c.order.next = at end
end

-- places is for how many more rounds of a queue there is room in the fleet, and on the node.
local function places(q)
  if not q.fleet then
    q.fleet = q.threads and q.threads - redis.call('SCARD', q.busy) or math.huge
    q.here = q.maxthreads and A.node ~= '' and q.maxthreads - redis.call('SCARD', q.both) or math.huge
  end
  return math.min(q.fleet, q.here)
end

-- best is the bucket that a queue offers next. One that finds too little of a
-- resource keeps it: what comes after it in the queue does not get it either.
local function best(c, q)
  local b = c.order.best(q)
  if not b or b.demand == '' then return b end
  c.free = c.free or resources(K.used, A.resources, MOST_IDS)
  local but, kept = {}, {}
  while b and b.demand ~= '' and c.free.short(b.demand, kept) do
    but[b], q.short = true, true
    c.free.keep(b.demand, kept)
    b = c.order.best(q, but)
  end
  return b
end

-- spoilt notes a damaged task, and asks a server to look at it: nobody else meets it any more.
local function spoilt(c, id)
  c.damaged[#c.damaged + 1] = id
  if not c.dry then
    redis.call('ZADD', K.due, c.stamp, id)
    token(K.wakeServer)
  end
end

-- try takes the head of a bucket and returns whether it can be claimed; what cannot leaves the bucket, because a foreign client
-- has claimed it, it is expired, or damaged. So does what TIME, which has stepped back since, says is too early, until
-- turn puts it back.
local function try(c, q, b)
  local member, taken = c.order.pass(b)
  local id = string.sub(member, 2)
  c.budget = c.budget - 1
  local t, log = read(id)
  if not t then
    if taken then c.damaged[#c.damaged + 1] = id else spoilt(c, id) end
    return false
  end
  if c.ahead and t[18] and t[18] ~= '' then -- of a plan, which waits for it
    c.order.back(b)
    c.budget = 0
    return false
  end
  if taken or t[1] ~= 'open' or t[5] ~= 'inf' and wall.truth > tonumber(t[5]) * 1000000 then return false end
  if wall.ahead > 0 and wall.truth < tonumber(t[4]) * 1000000 then
    c.early[#c.early + 1] = {b.ready, moment(t[4]), member}
    return false
  end
  local allotted = b.demand ~= '' and c.free.allot(b.demand) or ''
  c.got[#c.got + 1] = {id, request .. '.' .. (#c.got + 1), c.stamp, allotted, unpack(t)}
  c.logs[#c.got], c.of[#c.got] = log, q
  q.fleet, q.here, c.room, q.took = q.fleet - 1, q.here - 1, c.room - 1, true
  return true
end

-- offer gives a queue its turn: one task. It returns whether there was one.
local function offer(c, q)
  while c.budget > 0 and places(q) > 0 do
    local b = best(c, q)
    if not b then return false end
    if try(c, q, b) then return true end
  end
  return false
end

-- choose lets the queues take turns until the worker has what it asked for, or there is nothing more for it.
local function choose(c, turns, first)
  local took = #turns > 0
  while took do
    took = false
    for i = 0, #turns - 1 do
      if #c.got == c.most or c.room <= 0 then break end
      if offer(c, turns[(first + i) % #turns + 1]) then took = true end
    end
  end
end

-- further claims ahead, from queues without limits.
local function further(c)
  if A.ahead == '0' or #c.got < c.most or c.limit then return end
  local turns = {}
  for _, q in ipairs(c.turns) do
    if not (q.threads or q.maxthreads or q.demands) then turns[#turns + 1] = q end
  end
  c.ahead, c.most = true, tonumber(A.most)
  choose(c, turns, tonumber(A.first))
end

-- deadline is the next moment a server must look at the task once it runs.
local function deadline(c, t)
  if t[9] == 'inf' and t[10] == 'inf' then return nil end
  local grace = tonumber(meta_timeout_grace or '')
  if not (grace and grace >= 0) then grace = DEFAULT_GRACE end -- the comparison also leaves out nan
  local limit = t[10] ~= 'inf' and c.clock + tonumber(t[10]) + grace or math.huge
  local last = t[9] ~= 'inf' and tonumber(moment(t[9])) or math.huge
  return string.format('%.6f', math.min(limit, last))
end

-- hold writes what was chosen: each task in its hash, then once for all the sets that count them and the indices by time.
local function hold(c)
  local ids, begun, ends, counted = {}, {}, {}, {}
  local head = datetime(wall.whole) .. ' - ' .. A.writer .. ' moving task '
  for i, t in ipairs(c.got) do ids[i] = t[1] end
  redis.call('ZREM', K.open, unpack(ids))
  for i, t in ipairs(c.got) do
    local id, round, q = t[1], t[6] .. ':', c.of[i]
    t[7] = string.format('%d', following(t[7]))
    local v = {'state', 'running', 'rev', t[7], round .. 'worker', A.worker, round .. 'claim', t[2], round .. 'running', c.stamp,
      'log', append(c.logs[i], head .. id .. ': open -> running')}
    if A.node ~= '' then v[13], v[14] = round .. 'node', A.node end
    if A.incarnation ~= '' then v[#v + 1], v[#v + 2] = round .. 'incarnation', A.incarnation end
    if t[4] ~= '' then
      redis.call('HSET', K.used, id, t[4])
      v[#v + 1], v[#v + 2] = round .. 'resources', t[4]
    end
    redis.call('HSET', K.task(id), unpack(v))
    counted[q] = counted[q] or {}
    counted[q][#counted[q] + 1] = id
    local due = deadline(c, t)
    if due then ends[#ends + 1], ends[#ends + 2] = due, id end
    happened(id, t[6], 'open', 'running', 'claim', 'worker', A.worker)
  end
  -- A short set is a list, which Redis reads from its head to find the place of a new member: the last one first, none is read twice.
  for i = #ids, 1, -1 do begun[#begun + 1], begun[#begun + 2] = c.stamp, ids[i] end
  redis.call('ZADD', K.running, unpack(begun))
  if #ends > 0 then redis.call('ZADD', K.due, unpack(ends)) end
  for q, some in pairs(counted) do
    redis.call('SADD', q.busy, unpack(some))
    if A.node ~= '' then redis.call('SADD', q.both, unpack(some)) end
  end
  if A.node ~= '' then redis.call('SADD', K.busyNode, unpack(ids)) end
  if A.incarnation ~= '' then redis.call('SADD', K.held, unpack(ids)) end
  if c.trial then -- a probe: how it ends decides, beside whatever else still runs here
    redis.call('HDEL', K.node, 'trial_at')
    redis.call('HSET', K.node, 'probe', ids[1])
  end
  redis.call('SET', K.lastClaim, request .. ' ' .. table.concat(ids, ' '), 'EX', 86400)
end

-- unclaimable is an error reply if a key that hold writes, and that was not read yet, has another type. SDIFF asks for many at once.
local function unclaimable(c)
  local sets, limited = {K.busyQueue(''), K.held}, c.limit
  if A.node ~= '' then sets[3] = K.busyNode end
  for _, q in ipairs(c.turns) do
    sets[#sets + 1] = q.busy
    if A.node ~= '' then sets[#sets + 1] = q.both end
    limited = limited or q.threads or q.maxthreads or q.demands
  end
  local asked = redis.pcall('SDIFF', unpack(sets))
  return asked.err and asked or wrongtype('zset', {K.running, K.due}) or limited and wrongtype('hash', {K.used, K.full}) or nil
end

-- call wakes who waits for any of the buckets of a queue in which tasks are due.
local function call(c, q)
  local lists = {}
  for i, b in ipairs(c.order.waiting(q)) do lists[i] = b.wake end
  if #lists > 1 and #lists <= 1000 and redis.call('EXISTS', unpack(lists)) == #lists then return end -- as mostly
  for _, list in ipairs(lists) do token(list) end
end

-- spare passes on the places that are left of a queue in which this worker has nothing more to
-- do: only the first that became free has woken somebody.
local function spare(c, q)
  if not q.took or c.room <= 0 or q.here <= 0 or q.fleet <= 0 then return end
  if q.threads then token(q.wake) end
  if c.limit or q.maxthreads and A.node ~= '' then token(K.wakeNode) end
end

-- rest says what is left of a queue. It wakes another worker for due tasks that
-- others may claim: one that waits for their bucket, for a place in their queue, or for one on this node. It notes a
-- limit that is reached, so that the next free place wakes a worker that waits for it.
-- It wakes none for what is full.
local function rest(c, q)
  q.short = false
  local can = best(c, q)
  if not (can or c.order.best(q)) then
    if not c.again then spare(c, q) end
    return
  end
  places(q)
  local fleet, here = q.fleet > 0, can ~= nil and c.room > 0 and q.here > 0
  if not c.again then
    if not fleet then redis.call('HSET', K.full, 'q:' .. q.name, '1') end
    if A.node ~= '' and (not here or q.short) then redis.call('HSET', K.full, 'n:' .. A.node, '1') end
    if fleet and (#c.got > 0 or not here) then
      call(c, q)
      if q.threads then token(q.wake) end
    end
    if fleet and here and #c.got > 0 and (c.limit or q.maxthreads or q.demands) then token(K.wakeNode) end
  end
  if fleet and here then
    c.more = '1'
  else
    c.full[#c.full + 1] = q.name
    if here then c.elsewhere[#c.elsewhere + 1] = q.name end
  end
end

-- leftover puts back what is too early, and says what is left of all queues.
local function leftover(c)
  for _, q in ipairs(c.queues) do c.order.sweep(q) end
  for _, e in ipairs(c.early) do
    redis.call('ZADD', e[1], e[2], e[3])
    c.order.next = math.min(c.order.next, tonumber(e[2]))
  end
  for _, q in ipairs(c.queues) do rest(c, q) end
end

-- gone reports whether the session of the worker is over, also because a new epoch has begun.
local function gone()
  if A.incarnation == '' then return false end
  local doc = session(A.worker)
  if doc.err then return redis.error_reply(doc.err) end
  return doc[1] ~= A.incarnation or doc[2] == 'lost' or doc[2] == 'stopped' or (tonumber(doc[3] or '') or 1) ~= epoch
end

-- report is what a dry claim answers.
local function report(c)
  local q, found = c.queues[asked.queue], ''
  places(q)
  local all = {left(q.fleet), left(q.here), left(c.cap), c.gated and '1' or '',
    hindrance(c.order, c.queues, q, c.clock, resources(K.used, A.resources, MOST_IDS))}
  local first = tonumber(A.first)
  for i, other in ipairs(c.turns) do
    if other == q then first = i - 1 end
  end
  choose(c, c.turns, first)
  for _, t in ipairs(c.got) do
    if t[1] == string.sub(asked.member, 2) then found = '1' end
  end
  all[9] = found
  return all
end

local function claims(dry)
  if gone() then return -1 end
  local beat = A.incarnation ~= '' and redis.call('ZSCORE', K.lease, A.worker)
  local before = redis.call('GET', K.lastClaim)
  local again = before and string.match(before, '^%S+') == request
  if not again and A.rules ~= '' and (meta_rules or '0') ~= A.rules then return -2 end
  if not again and A.incarnation ~= '' and session(A.worker)[4] == A.request then return -2 end
  local stamp = now()
  local clock = tonumber(stamp)
  if not again and A.till ~= '' and clock >= tonumber(A.till) then return -3 end
  if dry and tonumber(asked.at) > clock then stamp, clock = asked.at, tonumber(asked.at) end
  local c = {dry = dry, again = again, stamp = stamp, clock = clock, order = heads(clock, stamp, dry), most = tonumber(A.most) - tonumber(A.ahead),
    budget = tonumber(A.most) + 100, got = again and repeated(before) or {}, logs = {}, of = {}, damaged = {}, early = {}, turns = {}, full = {}, elsewhere = {}, more = ''}
  c.queues = candidates()
  place(c)
  for _, q in ipairs(c.queues) do
    if c.order.due(q) then c.turns[#c.turns + 1] = q end -- where nothing is due, no turn is lost
  end
  if dry then return report(c) end
  if #c.turns > 0 then
    if not again then
      local wrong = unclaimable(c)
      if wrong then return wrong end
      choose(c, c.turns, tonumber(A.first))
      further(c)
      if #c.got > 0 then hold(c) end
    end
    leftover(c)
  end
  if beat then redis.call('ZADD', K.lease, stamp, A.worker) end -- who claims is alive
  return {stamp, c.more, c.order.next < math.huge and string.format('%.6f', c.order.next) or '', c.damaged, c.got,
    (meta_buckets or '0') ~= A.buckets and '1' or '', c.full, #c.turns > 0 and c.room <= 0 and '1' or '', c.elsewhere, wall.ahead}
end
