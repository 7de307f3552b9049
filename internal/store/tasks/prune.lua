-- prune takes buckets off the list that are empty; a task that comes puts its bucket there again.
-- KEYS meta, buckets; then pairs: ready, wake
-- ARGV: their names
-- Returns how many it took off.
local wrong = wrongtype('hash', {K.meta}) or wrongtype('set', {K.buckets})
if wrong then return wrong end
local gone = 0
for i, name in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[#K + 2 * i - 1]) == 0 then
    gone = gone + redis.call('SREM', K.buckets, name)
    redis.call('DEL', KEYS[#K + 2 * i])
  end
end
if gone > 0 then
  redis.call('HINCRBY', K.meta, 'buckets', 1)
  counted(1) -- a version that is lost and given again would stand for two lists
end
return gone
