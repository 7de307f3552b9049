-- Offers: what the queues of a claim have for its worker, and for how much of that there is room.
local queues, turns, again = {}, {}, false -- those with a due task have turns; again says that the claim was made before
local limit, room, ungated -- most rounds on the node or nil; how many more there may be, with its gate and without
local trial, gated -- whether the gate lets one through, as a trial, or nothing
local free -- what the node has of resources, once a task asks for some
local slots -- of the worker that are free

-- narrowed is a demand without the slots, and their number if it names one: cpus=4,gpu=1.
local function narrowed(demand)
  local cpus = string.match(',' .. demand, ',cpus=(%d+)')
  if not cpus then return demand end
  return (string.gsub(string.gsub(',' .. demand, ',cpus=%d+', ''), '^,', '')), tonumber(cpus)
end

local function candidates()
  local buckets = k + 3 * tonumber(A.queues)
  for i = 1, tonumber(A.queues) do
    local q = {name = ARGV[a + 1], threads = tonumber(ARGV[a + 2]), maxthreads = tonumber(ARGV[a + 3]), lifo = ARGV[a + 4] == '1',
      aging = tonumber(ARGV[a + 5]), buckets = {}, busy = KEYS[k + 1], both = KEYS[k + 2], wake = KEYS[k + 3]}
    local n = tonumber(ARGV[a + 6])
    a, k = a + 6, k + 3
    for b = 1, n do
      local demand, cpus = ARGV[a + 2], nil
      if demand ~= '' then demand, cpus = narrowed(demand) end
      q.buckets[b] = {priority = tonumber(ARGV[a + 1]), demand = demand, cpus = cpus, width = cpus or 1, plain = ARGV[a + 2] == '',
        ready = KEYS[buckets + 1], wake = KEYS[buckets + 2], from = 0, size = 1, at = 1, last = 0, gone = {}} -- what heads have read of it
      q.demands = q.demands or ARGV[a + 2] ~= ''
      a, buckets = a + 2, buckets + 2
    end
    queues[i] = q
  end
end

-- place finds out what there is room for on the node, as far as the node itself is concerned.
local function place()
  limit = A.node ~= '' and tonumber(A.maxthreads) or nil
  room = limit and limit - redis.call('SCARD', K.busyNode) or math.huge
  ungated = room
  if meta_quarantine ~= 'on' or A.node == '' then return end
  local n = redis.call('HMGET', K.node, 'run', 'quarantined', 'trial_at')
  if (tonumber(n[1] or '') or 0) < GATE_RUN and not tonumber(n[2] or '') then return end -- a malformed number counts as missing
  local at = tonumber(n[3] or '') or math.huge
  limit, trial, gated = limit or math.huge, clock >= at, clock < at
  room = math.min(room, trial and 1 or 0)
  if gated then starts = at end
end

-- places is for how many more rounds of a queue there is room in the fleet, and on the node.
local function places(q)
  if not q.fleet then
    q.fleet = q.threads and q.threads - redis.call('SCARD', q.busy) or math.huge
    q.here = q.maxthreads and A.node ~= '' and q.maxthreads - redis.call('SCARD', q.both) or math.huge
  end
  return math.min(q.fleet, q.here)
end

--[[lib gather]]

-- best is the bucket that a queue offers next. One that finds too little of a resource keeps it from what comes after it there. One whose
-- tasks take more slots than are free is passed over, or ends the claim, if the worker gathers slots for it.
local function best(q)
  local b = foremost(q)
  if not b or b.plain then return b end
  local but, kept = {}, {}
  while b do
    free = free or b.demand ~= '' and resources() or nil
    local short = b.demand ~= '' and free.short(b.demand, kept)
    if not short and not wide(b) then return b end
    but[b] = true
    if short then
      q.short = true
      free.keep(b.demand, kept)
    elseif gathers(q, b) then
      return nil
    end
    b = foremost(q, but)
  end
end
