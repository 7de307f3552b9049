-- note appends lines to the log of a running task, in the name of the worker
-- that holds it, or writes a field of its round.
--
-- KEYS[1] meta   KEYS[2] task
-- ARGV[1] state the task must be in   ARGV[2] round   ARGV[3] claim   ARGV[4] the lines, joined by newlines, or ''
-- ARGV[5] name of the round's field, or ''   ARGV[6] its value
-- Returns 1 written, 2 it is there already (the log ends with these lines), -1 stale claim.
local field = ARGV[2] .. ':' .. ARGV[5]
local t = redis.call('HMGET', KEYS[2], 'state', 'round', 'rev', 'log', ARGV[2] .. ':claim', field)
if t[1] ~= ARGV[1] or t[2] ~= ARGV[2] or t[5] ~= ARGV[3] then return -1 end
local log, v = t[4] or '', {}
if ARGV[4] ~= '' and string.sub(log, -#ARGV[4]) ~= ARGV[4] then v = {'log', append(log, ARGV[4])} end
if ARGV[5] ~= '' and t[6] ~= ARGV[6] then
  v[#v + 1] = field
  v[#v + 1] = ARGV[6]
end
if #v == 0 then return 2 end
redis.call('HSET', KEYS[2], 'rev', string.format('%d', following(t[3])), unpack(v))
return 1
