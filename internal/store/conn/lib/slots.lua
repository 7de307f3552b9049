-- counts(queue, node) are the sets that count a running round: of its queue,
-- of its node, and of both. The length tells node and queue apart.
local function counts(queue, node)
  return K.busyQueue(queue), K.busyNode(node), K.busyBoth(#node .. ':' .. node .. ':' .. queue)
end

-- holders() gathers rounds that are over, and takes them all at once out of what counts them: the tasks a worker
-- holds, the rounds of a queue and of a node, the resources of a round, the rounds to stop. It wakes a worker that waits for a
-- place there. Sets of another type are no reason to fail.
local function holders()
  local h, places = {}, {}

  -- leave is for one round: its worker, its node ('' for none), its queue, and what it has got of the node or nil.
  function h.leave(id, worker, node, queue, allotted)
    local name = worker .. '\n' .. node .. '\n' .. queue
    local place = places[name]
    if not place then
      place = {worker = worker, node = node, queue = queue ~= '' and queue or DEFAULT_QUEUE, ids = {}}
      places[name] = place
    end
    place.ids[#place.ids + 1] = id
    if node ~= '' and allotted then redis.pcall('HDEL', K.used(node), id) end
  end

  local function free(place)
    local ids, ofqueue, ofnode, ofboth = place.ids, counts(place.queue, place.node)
    redis.pcall('SREM', K.held(place.worker), unpack(ids))
    redis.pcall('SREM', ofqueue, unpack(ids))
    if place.node ~= '' then
      redis.pcall('SREM', ofnode, unpack(ids))
      redis.pcall('SREM', ofboth, unpack(ids))
    end
    if redis.call('EXISTS', K.stop(place.worker)) == 1 then
      for _, id in ipairs(ids) do redis.pcall('SREM', K.stop(place.worker), id, 'd' .. id) end
    end
    vacant(place.queue, place.node)
  end

  function h.done()
    for _, place in pairs(places) do free(place) end
  end

  return h
end

-- unhold(task, round, id) does that for one round. Returns 1 if the worker's set had it, else 0.
local function unhold(task, round, id)
  local t = redis.pcall('HMGET', task, round .. ':worker', round .. ':node', 'queue', round .. ':resources')
  if t.err or not t[1] then return 0 end
  local had = redis.pcall('SISMEMBER', K.held(t[1]), id)
  local h = holders()
  h.leave(id, t[1], t[2] or '', t[3] or '', t[4])
  h.done()
  return had == 1 and 1 or 0
end

-- count(queue, node, id, allotted) puts a running round into all that counts it and
-- returns how many of them did not have it. allotted is what it has got of the node, or ''.
local function count(queue, node, id, allotted)
  local new = 0
  local function add(command, ...)
    if redis.pcall(command, ...) == 1 then new = new + 1 end
  end
  local ofqueue, ofnode, ofboth = counts(queue, node)
  add('SADD', ofqueue, id)
  if node ~= '' then
    add('SADD', ofnode, id)
    add('SADD', ofboth, id)
    if allotted ~= '' then add('HSET', K.used(node), id, allotted) end
  end
  return new
end
