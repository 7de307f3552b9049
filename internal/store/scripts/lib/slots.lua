-- counts(p, queue, node) are the sets that count a running round: of its queue,
-- of its node, and of both. p is the list of prefixes that Go declares (see
-- keys.counting). The length tells node and queue apart.
local function counts(p, queue, node)
  return p[2] .. queue, p[3] .. node, p[4] .. #node .. ':' .. node .. ':' .. queue
end

-- token pushes a token if the list has none. A list of another type is no
-- reason to fail.
local function token(list)
  if redis.pcall('LLEN', list) == 0 then redis.call('LPUSH', list, '1') end
end

-- vacant(p, queue, node) wakes who waits for a place in the queue and who waits for one
-- on the node, since one is free.
local function vacant(p, queue, node)
  local waits = redis.pcall('HMGET', p[7], 'q:' .. queue, 'n:' .. node)
  if waits.err then return end
  if waits[1] then
    redis.call('HDEL', p[7], 'q:' .. queue)
    token(p[8] .. queue)
  end
  if waits[2] then
    redis.call('HDEL', p[7], 'n:' .. node)
    token(p[9] .. node)
  end
end

-- holders(p) gathers rounds that are over, and takes them all at once out of what counts them: the tasks a worker
-- holds, the rounds of a queue and of a node, what a round has got of the node, what is to be stopped. If somebody waits for a
-- place there he is woken. Whose round it is becomes known here only, so the keys are made from the declared
-- prefixes. Sets of another type are no reason to fail.
local function holders(p)
  local h, sets, freed = {}, {}, {}

  local function from(set, id)
    local ids = sets[set]
    if ids then ids[#ids + 1] = id else sets[set] = {id} end
  end

  -- leave is for one round: its worker, its node ('' for none), its queue, and what it has got of the node or nil.
  function h.leave(id, worker, node, queue, allotted)
    if queue == '' then queue = p[10] end
    local ofqueue, ofnode, ofboth = counts(p, queue, node)
    from(p[1] .. worker, id)
    from(p[6] .. worker, id)
    from(p[6] .. worker, 'd' .. id)
    from(ofqueue, id)
    if node ~= '' then
      from(ofnode, id)
      from(ofboth, id)
      if allotted then redis.pcall('HDEL', p[5] .. node, id) end
    end
    freed[ofboth] = {queue, node}
  end

  function h.done()
    for set, ids in pairs(sets) do redis.pcall('SREM', set, unpack(ids)) end
    for _, place in pairs(freed) do vacant(p, place[1], place[2]) end
  end

  return h
end

-- unhold(p, task, round, id) does that for one round. Returns 1 if the worker's set had it, else 0.
local function unhold(p, task, round, id)
  local t = redis.pcall('HMGET', task, round .. ':worker', round .. ':node', 'queue', round .. ':resources')
  if t.err or not t[1] then return 0 end
  local had = redis.pcall('SISMEMBER', p[1] .. t[1], id)
  local h = holders(p)
  h.leave(id, t[1], t[2] or '', t[3] or '', t[4])
  h.done()
  return had == 1 and 1 or 0
end

-- count(p, queue, node, id, allotted) puts a running round into all that counts it and
-- returns how many of them did not have it. allotted is what it has got of the node, or ''.
local function count(p, queue, node, id, allotted)
  local new = 0
  local function add(command, ...)
    if redis.pcall(command, ...) == 1 then new = new + 1 end
  end
  local ofqueue, ofnode, ofboth = counts(p, queue, node)
  add('SADD', ofqueue, id)
  if node ~= '' then
    add('SADD', ofnode, id)
    add('SADD', ofboth, id)
    if allotted ~= '' then add('HSET', p[5] .. node, id, allotted) end
  end
  return new
end
