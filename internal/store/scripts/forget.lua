-- forget takes away all that is known of a node on which nothing runs and from which no worker is registered.
--
-- KEYS[1] meta   KEYS[2] nodes   KEYS[3] node:<node>   KEYS[4] suspects   KEYS[5] full   KEYS[6] wake list of the node
-- KEYS[7] rounds of the node   KEYS[8] used:<node>   KEYS[9] lease
-- ARGV[1] node   ARGV[2] worker key prefix: which workers there are becomes known here only   ARGV[3] channel of rules
-- Returns '' done, also if nothing is known of it, or why not: 'rounds', or 'worker ' and its name; then nothing changes.
local wrong = wrongtype('hash', {1, 3, 5, 8}) or wrongtype('set', {2, 4, 7}) or wrongtype('list', {6}) or wrongtype('zset', {9})
if wrong then return wrong end
if redis.call('SCARD', KEYS[7]) > 0 then return 'rounds' end
for _, name in ipairs(redis.call('ZRANGE', KEYS[9], 0, -1)) do
  if redis.pcall('HGET', ARGV[2] .. name, 'node') == ARGV[1] then return 'worker ' .. name end
end
local known = redis.call('SREM', KEYS[2], ARGV[1]) + redis.call('DEL', KEYS[3], KEYS[6], KEYS[8])
  + redis.call('SREM', KEYS[4], ARGV[1]) + redis.call('HDEL', KEYS[5], 'n:' .. ARGV[1])
if known > 0 then
  counted(1)
  redis.call('HINCRBY', KEYS[1], 'rules', 1)
  redis.call('PUBLISH', ARGV[3], '1')
end
return ''
