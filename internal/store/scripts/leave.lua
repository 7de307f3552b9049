-- leave ends the session of a worker that holds nothing.
--
-- KEYS[1] meta   KEYS[2] worker:<name>   KEYS[3] lease   KEYS[4] held:<name>   KEYS[5] halt:<name>
-- KEYS[6] set_aside
-- ARGV[1] name   ARGV[2] incarnation   ARGV[3] state of a lost worker   ARGV[4] of one that has left
-- ARGV[5] task key prefix   ARGV[6] state whose tasks are held
-- Returns 0 left, also if it has left before, -1 the session is over, or how many tasks it holds; then
-- nothing changes.
local doc = redis.call('HMGET', KEYS[2], 'incarnation', 'state', 'epoch')
if doc[1] ~= ARGV[2] or doc[2] == ARGV[3] or (tonumber(doc[3] or '') or 1) ~= epoch then return -1 end
if doc[2] == ARGV[4] then return 0 end
local found, stale = rounds(KEYS[4], {name = ARGV[1], tasks = ARGV[5], running = ARGV[6], aside = KEYS[6]}, 1000000)
if #found > 0 then return #found end
local wrong = wrongtype('zset', {3}) or wrongtype('list', {5})
if wrong then return wrong end
local stamp = now()
forget(KEYS[4], stale)
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('DEL', KEYS[5])
counted(1)
redis.call('HSET', KEYS[2], 'state', ARGV[4], 'ended', stamp, 'reason', '', 'busy', '0', 'stuck', '0')
return 0
