-- claims() moves due tasks from the buckets to one worker, as far as the limits of queues and node allow; turn.lua says how it is called.
-- Dry (lib/dry.lua), it decides the same and writes nothing.
--[[lib heads]]
--[[lib resources]]
--[[lib offers]]
--[[lib hold]]
--[[lib leftover]]
local damaged, early, ahead = {}, {}, false -- ids; what goes back; whether what is claimed is claimed ahead
local budget -- of tasks that are looked at
local passed = 0 -- tasks that were passed over

-- passes leaves a task in its bucket, for others to take, and says so, for a while: one that is for the named workers, or that has failed
-- on this node. Not if there are many, which would hide what is behind them.
local function passes(b, avoid)
  local till, whom = string.match(avoid, '^(%S+) (.*)$')
  till = tonumber(till or '') or 0
  local named = whom and string.sub(whom, 1, 1) == '/'
  if till <= clock or whom == '/' or passed >= (named and 100 or 16) then return false end
  if named and string.find(whom, '/' .. A.worker .. '/', 1, true) or not named and whom ~= A.node then return false end
  passed, budget = passed + 1, budget + 1
  b.at, b.from = b.at + 2, b.from + 1
  starts = math.min(starts, till)
  return true
end

-- try takes the head of a bucket and returns whether it can be claimed; what cannot leaves the bucket, because a foreign client has claimed
-- it, it is expired, or damaged. So does what TIME, which has stepped back since, says is too early, until claims puts it back.
local function try(q, b)
  local i, member = (b.at + 1) / 2, b.member
  local id, taken = b.ids[i], not b.open[i]
  local t, log = read(id)
  budget = budget - 1
  if t and ahead and tonumber(t[22] or '') then -- of a plan, which waits for it
    budget = 0
    return false
  end
  if t and t[23] and t[23] ~= '' and passes(b, t[23]) then return false end
  b.at = b.at + 2
  b.gone[#b.gone + 1] = member
  if not t then
    damaged[#damaged + 1] = id
    if not taken and not dry then -- a server is to look at it: nobody else meets it any more
      redis.call('ZADD', K.due, stamp, id)
      token(K.wakeServer)
    end
    return false
  end
  if taken or t[5] ~= 'open' or t[9] ~= 'inf' and wall.truth > tonumber(t[9]) * 1000000 then return false end
  if wall.ahead > 0 and wall.truth < tonumber(t[8]) * 1000000 then
    early[#early + 1] = {b.ready, moment(t[8]), member}
    return false
  end
  local n = #got + 1
  t[2], t[3], t[4] = request .. '.' .. n, stamp, b.demand ~= '' and free.allot(b.demand) or ''
  if b.cpus then
    t[4] = string.format(b.demand ~= '' and 'cpus:%d[] %s' or 'cpus:%d[]', b.cpus, t[4])
    if not dry then redis.call('HDEL', K.full, 'w:' .. A.worker) end
  end
  got[n], logs[n], of[n] = t, log, q
  q.fleet, q.here, room, slots, q.took = q.fleet - 1, q.here - 1, room - 1, slots - b.width, true
  return true
end

-- offer gives a queue its turn: one task. It returns whether there was one.
local function offer(q)
  while budget > 0 and places(q) > 0 do
    local b = best(q)
    if not b then return false end
    if try(q, b) then return true end
  end
  return false
end

-- choose lets queues take turns until the worker has what it asked for, or there is nothing more for it. That for whose task it gathers
-- slots begins.
local function choose(list, first)
  for i = 1, A.gathers ~= '' and #list or 0 do
    if list[i].name == A.gathers then first = i - 1 end
  end
  local took = #list > 0
  while took do
    took = false
    for i = 0, #list - 1 do
      if slots <= 0 or room <= 0 then break end
      if offer(list[(first + i) % #list + 1]) then took = true end
    end
  end
end

-- further claims ahead, from queues without limits.
local function further()
  if A.ahead == '0' or slots > 0 or limit then return end
  local list = {}
  for _, q in ipairs(turns) do
    if not (q.threads or q.maxthreads or q.demands) then list[#list + 1] = q end
  end
  ahead, slots = true, tonumber(A.ahead)
  choose(list, tonumber(A.first))
  slots = 0
end

local function claims()
  local doc = A.incarnation ~= '' and session(A.worker)
  -- The session is over, also because a new epoch has begun.
  if doc and (doc.err or doc[1] ~= A.incarnation or doc[2] == 'lost' or doc[2] == 'stopped' or (tonumber(doc[3] or '') or 1) ~= epoch) then
    return -1
  end
  local beat = doc and redis.call('ZSCORE', K.lease, A.worker)
  local before = redis.call('GET', K.lastClaim)
  again = before and string.match(before, '^%S+') == request
  if not again and A.rules ~= '' and (meta_rules or '0') ~= A.rules then return -2 end
  local last = before and string.match(before, '^e%d+%-(%S+)')
  if not again and doc and (doc[4] == A.request or outrun(A.request, doc[4]) or outrun(A.request, last)) then return -2 end
  stamp = now()
  clock = tonumber(stamp)
  if not again and A.till ~= '' and clock >= tonumber(A.till) then return -3 end
  if dry and tonumber(ARGV[#ARGV]) > clock then stamp, clock = ARGV[#ARGV], tonumber(ARGV[#ARGV]) end
  slots, budget = tonumber(A.most) - tonumber(A.ahead), tonumber(A.most) + 100
  if again then repeated(before) end
  candidates()
  place()
  for _, q in ipairs(queues) do
    if foremost(q) then turns[#turns + 1] = q end -- where nothing is due, no turn is lost
  end
  if dry then
    --[[lib dry]]
    return report()
  end
  if #turns > 0 then
    if not again then
      local wrong = unclaimable()
      if wrong then return wrong end
      choose(turns, tonumber(A.first))
      further()
      if #got > 0 then hold() end
    end
    for _, q in ipairs(queues) do
      for _, b in ipairs(q.buckets) do sweep(b) end
    end
    for _, e in ipairs(early) do
      redis.call('ZADD', unpack(e))
      starts = math.min(starts, tonumber(e[2]))
    end
    for _, q in ipairs(queues) do rest(q) end
  end
  if beat then redis.call('ZADD', K.lease, stamp, A.worker) end -- who claims is alive
  return {stamp, more, starts < math.huge and string.format('%.6f', starts) or '', damaged, got,
    (meta_buckets or '0') ~= A.buckets and '1' or '', full, #turns > 0 and room <= 0 and '1' or '', elsewhere, wall.ahead,
    gathering or '', wider}
end
