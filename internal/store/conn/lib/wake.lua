-- token pushes a token if the list has none. A list of another type is no reason to fail.
local function token(list)
  if redis.pcall('LLEN', list) == 0 then redis.call('LPUSH', list, '1') end
end

-- vacant wakes who waits for a place in the queue and who waits for one on the node, since one is free.
local function vacant(queue, node)
  local waits = redis.pcall('HMGET', K.full, 'q:' .. queue, 'n:' .. node)
  if waits.err then return end
  if waits[1] then
    redis.call('HDEL', K.full, 'q:' .. queue)
    token(K.wakeQueue(queue))
  end
  if waits[2] then
    redis.call('HDEL', K.full, 'n:' .. node)
    token(K.wakeNode(node))
  end
end
