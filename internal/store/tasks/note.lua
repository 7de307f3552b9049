-- note appends lines to the log of a running task, in the name of the worker that holds it, or writes a field of its round.
-- KEYS meta, task
-- ARGV state (the task must be in), round, claim, lines (joined by newlines, or ''), field (of the round, or ''), value
-- Returns 1 written, 2 it is there already (the log ends with these lines), -1 stale claim.
local field = A.round .. ':' .. A.field
local t = redis.call('HMGET', K.task, 'state', 'round', 'rev', 'log', A.round .. ':claim', field)
if t[1] ~= A.state or t[2] ~= A.round or t[5] ~= A.claim then return -1 end
local log, v = t[4] or '', {}
if A.lines ~= '' and string.sub(log, -#A.lines) ~= A.lines then v = {'log', append(log, A.lines)} end
if A.field ~= '' and t[6] ~= A.value then v[#v + 1], v[#v + 2] = field, A.value end
if #v == 0 then return 2 end
redis.call('HSET', K.task, 'rev', string.format('%d', following(t[3])), unpack(v))
return 1
