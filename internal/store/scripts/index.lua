-- index puts one task where it belongs in its bucket and in due. The task
-- itself does not change.
--
-- KEYS[1] meta   KEYS[2] task   KEYS[3] due   KEYS[4] buckets   KEYS[5] bucket   KEYS[6] wake list of the bucket
-- ARGV[1] id   ARGV[2] state   ARGV[3] round   ARGV[4] revision: where the decision found the task
-- ARGV[5] deadline or ''   ARGV[6] score in the bucket, or '' for not in it   ARGV[7] name of the bucket
-- Returns 1 changed, 0 was right already, -2 the task has changed.
local t = redis.call('HMGET', KEYS[2], 'state', 'round', 'rev')
if t[1] ~= ARGV[2] or t[2] ~= ARGV[3] or (tonumber(t[3]) or 0) ~= tonumber(ARGV[4]) then return -2 end
local wrong = wrongtype('zset', {3, 5}) or wrongtype('set', {4}) or wrongtype('list', {6})
if wrong then return wrong end
local stamp = now()
local changed = 0
if ARGV[5] ~= '' then
  local score = redis.call('ZSCORE', KEYS[3], ARGV[1])
  if not score or tonumber(score) ~= tonumber(ARGV[5]) then
    redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
    changed = 1
  end
else
  changed = redis.call('ZREM', KEYS[3], ARGV[1])
end
local m = string.char(96 + #ARGV[1]) .. ARGV[1]
if ARGV[6] == '' then
  return math.max(changed, redis.call('ZREM', KEYS[5], m))
end
if redis.call('ZSCORE', KEYS[5], m) then return changed end
redis.call('SADD', KEYS[4], ARGV[7])
redis.call('ZADD', KEYS[5], ARGV[6], m)
if tonumber(ARGV[6]) <= tonumber(stamp) and redis.call('LLEN', KEYS[6]) == 0 then
  redis.call('LPUSH', KEYS[6], '1')
end
return 1
