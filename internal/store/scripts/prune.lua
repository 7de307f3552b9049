-- prune takes buckets off the list that are empty; a task that comes puts its
-- bucket there again.
--
-- KEYS[1] meta   KEYS[2] buckets   KEYS[3..] pairs: bucket, wake list of the bucket
-- ARGV their names
-- Returns how many it took off.
local wrong = wrongtype('hash', {1}) or wrongtype('set', {2})
if wrong then return wrong end
local gone = 0
for i, name in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[1 + 2 * i]) == 0 then
    gone = gone + redis.call('SREM', KEYS[2], name)
    redis.call('DEL', KEYS[2 + 2 * i])
  end
end
if gone > 0 then
  redis.call('HINCRBY', KEYS[1], 'buckets', 1)
  counted(1) -- a version that is lost and given again would stand for two lists
end
return gone
