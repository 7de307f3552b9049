-- index puts one task where it belongs: in its bucket, in due, and among the
-- tasks its worker holds under a lease, or out of them. The task itself does not change.
--
-- KEYS[1] meta   KEYS[2] task   KEYS[3] due   KEYS[4] buckets   KEYS[5] bucket   KEYS[6] wake list of the bucket
-- KEYS[7] lease   KEYS[8] held:<name>   KEYS[9] worker:<name>
-- ARGV[1] id   ARGV[2] state   ARGV[3] round   ARGV[4] revision: where the decision found the task
-- ARGV[5] deadline or ''   ARGV[6] score in the bucket, or '' for not in it   ARGV[7] name of the bucket
-- ARGV[8] worker, or '' if no session runs the task   ARGV[9] incarnation of that session
-- ARGV[10] '0' if the task does not run, '1' if a worker of ours runs it, '' if any other does
-- ARGV[11] its queue   ARGV[12] its node
-- ARGV[13..22] what counts a round (lib/slots.lua)
-- Returns 1 changed, 0 was right already, -2 the task has changed.
local t = redis.call('HMGET', KEYS[2], 'state', 'round', 'rev', ARGV[3] .. ':resources')
if t[1] ~= ARGV[2] or t[2] ~= ARGV[3] or (tonumber(t[3]) or 0) ~= tonumber(ARGV[4]) then return -2 end
local wrong = wrongtype('hash', {1}) or wrongtype('zset', {3, 5, 7}) or wrongtype('set', {4}) or wrongtype('list', {6})
if wrong then return wrong end
local watched = ARGV[8] == ''
if not watched then
  -- A worker that has registered anew does not hold the round of an older session.
  local newer = (tonumber(redis.call('HGET', KEYS[9], 'incarnation')) or 0) > tonumber(ARGV[9])
  watched = newer or redis.call('SISMEMBER', KEYS[8], ARGV[1]) == 1 and redis.call('ZSCORE', KEYS[7], ARGV[8])
end
local stamp = now()
local p = {unpack(ARGV, 13, 22)}
local changed = ARGV[10] == '0' and unhold(p, KEYS[2], ARGV[3], ARGV[1]) or 0
if ARGV[10] == '1' and count(p, ARGV[11], ARGV[12], ARGV[1], t[4] or '') > 0 then changed = 1 end
if not watched then
  redis.call('SADD', KEYS[8], ARGV[1])
  redis.call('ZADD', KEYS[7], 'NX', stamp, ARGV[8]) -- a worker that lives renews it, any other is lost in time
  changed = 1
end
if ARGV[5] ~= '' then
  local score = redis.call('ZSCORE', KEYS[3], ARGV[1])
  if not score or tonumber(score) ~= tonumber(ARGV[5]) then
    redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
    changed = 1
  end
else
  changed = math.max(changed, redis.call('ZREM', KEYS[3], ARGV[1]))
end
local m = string.char(96 + #ARGV[1]) .. ARGV[1]
if ARGV[6] == '' then
  return math.max(changed, redis.call('ZREM', KEYS[5], m))
end
if redis.call('SADD', KEYS[4], ARGV[7]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'buckets', 1)
  counted(1)
  changed = 1
end
if redis.call('ZSCORE', KEYS[5], m) then return changed end
-- It is in line from its start on if one was given, as in open.lua; one that was opened
-- again from now on at the earliest, as in move.lua.
local start = tonumber(ARGV[6])
redis.call('ZADD', KEYS[5], (ARGV[3] == '0' and start > 0 or start > tonumber(stamp)) and ARGV[6] or stamp, m)
if start <= tonumber(stamp) and redis.call('LLEN', KEYS[6]) == 0 then
  redis.call('LPUSH', KEYS[6], '1')
end
return 1
