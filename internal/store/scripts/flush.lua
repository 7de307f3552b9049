-- flush is the end of a flush: of meta only the history is left, and a new epoch begins, in which the ids begin at 1
-- again. Without it, who has seen more would take the flush for a loss.
--
-- KEYS[1] meta
-- ARGV[1] the epoch that was flushed
-- Returns 1, or 0 if there is no such history, or it has been flushed already.
if epoch ~= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
if not past[1] and not past[2] then return 0 end
redis.call('HSET', KEYS[1], 'epoch', string.format('%d', epoch + 1), 'seq', string.format('%d', seq), 'lives', lives)
return 1
