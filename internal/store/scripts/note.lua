-- note appends lines to the log of a running task, in the name of the worker
-- that holds it.
--
-- KEYS[1] meta   KEYS[2] task
-- ARGV[1] state the task must be in   ARGV[2] round   ARGV[3] claim   ARGV[4] the lines, joined by newlines
-- Returns 1 appended, 2 the log ends with these lines already, -1 stale claim.
local t = redis.call('HMGET', KEYS[2], 'state', 'round', 'rev', 'log', ARGV[2] .. ':claim')
if t[1] ~= ARGV[1] or t[2] ~= ARGV[2] or t[5] ~= ARGV[3] then return -1 end
local log = t[4] or ''
if string.sub(log, -#ARGV[4]) == ARGV[4] then return 2 end
redis.call('HSET', KEYS[2], 'log', append(log, ARGV[4]), 'rev', string.format('%d', (tonumber(t[3]) or 0) + 1))
return 1
