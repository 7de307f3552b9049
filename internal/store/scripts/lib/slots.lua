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

-- unhold(p, task, round, id) takes a round out of all that counts it: the tasks
-- its worker holds, the rounds of its queue and of its node, what it has got of
-- the node, what is to be stopped. If somebody waits for a place there he is
-- woken. Returns 1 if the worker's set had it, else 0. Whose round it is becomes
-- known here only, so the keys are made from the declared prefixes. Sets of
-- another type are no reason to fail.
local function unhold(p, task, round, id)
  local t = redis.pcall('HMGET', task, round .. ':worker', round .. ':node', 'queue', round .. ':resources')
  if t.err or not t[1] then return 0 end
  local queue, node = t[3] or '', t[2] or ''
  if queue == '' then queue = p[10] end
  local ofqueue, ofnode, ofboth = counts(p, queue, node)
  local gone = redis.pcall('SREM', p[1] .. t[1], id)
  redis.pcall('SREM', p[6] .. t[1], id)
  redis.pcall('SREM', ofqueue, id)
  if node ~= '' then
    redis.pcall('SREM', ofnode, id)
    redis.pcall('SREM', ofboth, id)
    if t[4] then redis.pcall('HDEL', p[5] .. node, id) end
  end
  vacant(p, queue, node)
  return gone == 1 and 1 or 0
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
