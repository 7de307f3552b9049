-- forget takes away all that is known of a node on which nothing runs and from which no worker is registered.
-- KEYS meta, nodes, node, suspects, full, wakeNode, busyNode, used, lease
-- ARGV node
-- Returns '' done, also if nothing is known of it, or why not: 'rounds', or 'worker ' and its name; then nothing changes.
local wrong = wrongtype('hash', {K.meta, K.node, K.full, K.used}) or wrongtype('set', {K.nodes, K.suspects, K.busyNode})
  or wrongtype('list', {K.wakeNode}) or wrongtype('zset', {K.lease})
if wrong then return wrong end
if redis.call('SCARD', K.busyNode) > 0 then return 'rounds' end
for _, name in ipairs(redis.call('ZRANGE', K.lease, 0, -1)) do
  if redis.pcall('HGET', K.workerDoc(name), 'node') == A.node then return 'worker ' .. name end
end
local known = redis.call('SREM', K.nodes, A.node) + redis.call('DEL', K.node, K.wakeNode, K.used)
  + redis.call('SREM', K.suspects, A.node) + redis.call('HDEL', K.full, 'n:' .. A.node)
if known > 0 then
  counted(1)
  redis.call('HINCRBY', K.meta, 'rules', 1)
  redis.call('PUBLISH', K.rules, '1')
end
return ''
