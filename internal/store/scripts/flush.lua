-- flush closes the namespace while it is being flushed, and opens it again at the end. Of meta only the history and what
-- servers have published is left then, and a new epoch begins, in which the ids begin at 1 again: without it, who has seen more would take the flush for a loss.
--
-- KEYS[1] meta
-- ARGV[1] token of the flush   ARGV[2] for how many seconds the namespace is closed, '' to open it again
-- Returns 1, or 0, and nothing changes, if another flush is under way. Sent again: the same.
local token = past[6] and string.match(past[6], '^(%w+) ')
if token and token ~= ARGV[1] and flushed() then return 0 end
if ARGV[2] ~= '' then
  local _, seconds = now()
  redis.call('HSET', KEYS[1], 'flushing', ARGV[1] .. ' ' .. string.format('%d', seconds + tonumber(ARGV[2])))
  return 1
end
if token ~= ARGV[1] then return 1 end
-- Workers register before a server publishes the settings again, and without lives the next to connect would take Redis for one started anew.
local kept = {'worker_timeout', 'timeout_grace', 'events', 'quarantine', 'lives'}
local values = redis.call('HMGET', KEYS[1], unpack(kept))
now()
redis.call('DEL', KEYS[1])
for i, field in ipairs(kept) do
  if values[i] then redis.call('HSET', KEYS[1], field, values[i]) end
end
if past[1] or past[2] then
  redis.call('HSET', KEYS[1], 'epoch', string.format('%d', epoch + 1), 'seq', string.format('%d', seq), 'clock', noted(true))
end
return 1
