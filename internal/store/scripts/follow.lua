-- follow asks for what the program of a task writes.
--
-- KEYS[1] meta   KEYS[2] follow   KEYS[3] task
-- ARGV[1] id   ARGV[2] for how many seconds   ARGV[3] state of a task whose program runs
-- ARGV[4] prefix of the workers' channels   ARGV[5] '1' for a reader that begins
-- Returns 1, or 0 if there is no such task.
local t = redis.call('HMGET', KEYS[3], 'state', 'round')
if not t[1] then return 0 end
local stamp = now()
local since = string.match(redis.call('HGET', KEYS[2], ARGV[1]) or '', ' (%S+)$')
if not since or ARGV[5] == '1' then since = stamp end
redis.call('HSET', KEYS[2], ARGV[1], string.format('%.6f', tonumber(stamp) + tonumber(ARGV[2])) .. ' ' .. since)
if t[1] == ARGV[3] then
  local worker = redis.call('HGET', KEYS[3], (t[2] or '') .. ':worker')
  if worker then redis.call('PUBLISH', ARGV[4] .. worker, '1') end
end
return 1
