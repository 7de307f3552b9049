-- counts are the sets that count a running round: of its queue, of its node, and of both. The length tells node and queue apart.
local function counts(queue, node)
  return K.busyQueue(queue), K.busyNode(node), K.busyBoth(#node .. ':' .. node .. ':' .. queue)
end

-- vacate notes that a round is over: its worker, its node ('' for none), its queue, and what it has got of the node or nil.
local places = {}
local function vacate(id, worker, node, queue, allotted)
  local name = worker .. '\n' .. node .. '\n' .. queue
  local place = places[name]
  if not place then
    place = {worker = worker, node = node, queue = queue ~= '' and queue or DEFAULT_QUEUE, ids = {}}
    places[name] = place
  end
  place.ids[#place.ids + 1] = id
  if node ~= '' and allotted then redis.pcall('HDEL', K.used(node), id) end
end

-- release takes all rounds that are over at once out of what counts them: the tasks a worker holds, the rounds of a queue and of a node,
-- the rounds to stop. It wakes a worker that waits for a place there. Sets of another type are no reason to fail.
local function release()
  for _, place in pairs(places) do
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
end
