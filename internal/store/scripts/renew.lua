-- renew is a worker's heartbeat. It counts also when the lease is over by the
-- clock, as long as nobody has given it up: Redis itself may have been away.
--
-- KEYS[1] meta   KEYS[2] worker:<name>   KEYS[3] lease   KEYS[4] held:<name>   KEYS[5] follow   KEYS[6] stop:<name>
-- ARGV[1] name   ARGV[2] incarnation   ARGV[3] default lease   ARGV[4], ARGV[5] states in which a session is over
-- ARGV[6] state   ARGV[7] reason   ARGV[8] busy   ARGV[9] stuck   ARGV[10] queues, as JSON
-- Returns {now, lease, order, {{followed id, since}...}, {id to stop...}, {id whose time is over...}, by how many microseconds now is ahead of TIME}, or -1, and nothing changes, if the session is over. Sent
-- again: the same.
local doc = redis.call('HMGET', KEYS[2], 'incarnation', 'state', 'pid', 'order', 'epoch')
if doc[1] ~= ARGV[2] or doc[2] == ARGV[4] or doc[2] == ARGV[5] or (tonumber(doc[5] or '') or 1) ~= epoch then return -1 end
local stamp, seconds = now()
local lease = string.format('%.14g', published(ARGV[3]))

local followed, over = {}, {}
local follow = redis.call('HGETALL', KEYS[5])
for i = 1, #follow, 2 do
  local till, since = string.match(follow[i + 1], '^(%S+) (%S+)$')
  if (tonumber(till) or 0) < tonumber(stamp) then
    if #over < 1000 then over[#over + 1] = follow[i] end -- unpack has a limit; the next heartbeat goes on
  elseif redis.call('SISMEMBER', KEYS[4], follow[i]) == 1 then
    followed[#followed + 1] = {follow[i], since}
  end
end

local stops, overdue = {}, {}
for _, member in ipairs(redis.call('SMEMBERS', KEYS[6])) do
  local id = string.match(member, '%d+$') or ''
  local list = id == member and stops or overdue
  if redis.call('SISMEMBER', KEYS[4], id) == 1 then list[#list + 1] = id end
end

local wrong = wrongtype('zset', {3})
if wrong then return wrong end
if #over > 0 then redis.call('HDEL', KEYS[5], unpack(over)) end
redis.call('ZADD', KEYS[3], stamp, ARGV[1])
redis.call('HSET', KEYS[2], 'state', ARGV[6], 'reason', ARGV[7], 'busy', ARGV[8], 'stuck', ARGV[9],
  'lease', lease, 'heartbeat', heartbeat(seconds, doc[3] or '0', ARGV[10]))
return {stamp, lease, doc[4] or '', followed, stops, overdue, wall.ahead}
