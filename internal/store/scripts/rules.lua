-- rules reads what decides about claims, at one moment. It writes nothing.
--
-- KEYS[1] meta   KEYS[2] buckets   KEYS[3] queues   KEYS[4] node:<node>
-- ARGV[1] prefix of queues: which there are becomes known here only
-- Returns {version, version of the list of buckets, {name of a bucket...}, {{name, field, value...} of a queue...},
-- {field, value...} of the node}.
local meta = redis.call('HMGET', KEYS[1], 'rules', 'buckets')
local function record(key, field)
  local doc = redis.pcall('HGETALL', key)
  return doc.err and {field, 'a key of another type'} or doc
end
local queues = {}
for i, name in ipairs(redis.call('SMEMBERS', KEYS[3])) do
  queues[i] = {name, unpack(record(ARGV[1] .. name, 'paused'))}
end
return {meta[1] or '0', meta[2] or '0', redis.call('SMEMBERS', KEYS[2]), queues, record(KEYS[4], 'maxthreads')}
