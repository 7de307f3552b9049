-- rules reads what decides about claims, at one moment. It writes nothing.
-- KEYS meta, buckets, queues, node
-- Returns {version, version of the list of buckets, {name of a bucket...}, {{name, field, value...} of a queue...},
-- {field, value...} of the node}.
local meta = redis.call('HMGET', K.meta, 'rules', 'buckets')
local function record(key, field)
  local doc = redis.pcall('HGETALL', key)
  return doc.err and {field, 'a key of another type'} or doc
end
local queues = {}
for i, name in ipairs(redis.call('SMEMBERS', K.queues)) do
  queues[i] = {name, unpack(record(K.queue(name), 'paused'))}
end
return {meta[1] or '0', meta[2] or '0', redis.call('SMEMBERS', K.buckets), queues, record(K.node, 'maxthreads')}
