-- follow asks for what the program of a task writes.
-- KEYS meta, follow, task
-- ARGV id, seconds (for how many), running (state of a task whose program runs), begins ('1' for a reader that does)
-- Returns 1, or 0 if there is no such task.
local t = redis.call('HMGET', K.task, 'state', 'round')
if not t[1] then return 0 end
local stamp = now()
local since = string.match(redis.call('HGET', K.follow, A.id) or '', ' (%S+)$')
if not since or A.begins == '1' then since = stamp end
redis.call('HSET', K.follow, A.id, string.format('%.6f', tonumber(stamp) + tonumber(A.seconds)) .. ' ' .. since)
local worker = t[1] == A.running and redis.call('HGET', K.task, (t[2] or '') .. ':worker')
if worker then redis.call('PUBLISH', K.call(worker), '1') end
return 1
