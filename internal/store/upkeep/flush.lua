-- flush closes the namespace while it is being flushed, and opens it again at the end. Of meta it keeps only the history and what servers
-- have published. It begins a new epoch, where ids start at 1 again: else a client that has seen more would take the flush for a loss.
-- KEYS meta
-- ARGV token (of the flush), seconds (for which the namespace is closed, '' to open it again)
-- Returns 1, or 0, and nothing changes, if another flush is under way. Sent again: the same.
local token = past[6] and string.match(past[6], '^(%w+) ')
if token and token ~= A.token and flushed() then return 0 end
if A.seconds ~= '' then
  local _, seconds = now()
  redis.call('HSET', K.meta, 'flushing', A.token .. ' ' .. string.format('%d', seconds + tonumber(A.seconds)))
  return 1
end
if token ~= A.token then return 1 end
-- Workers register before a server publishes the settings again, and without lives the next to connect would take Redis for a new one.
local kept = {'worker_timeout', 'timeout_grace', 'events', 'quarantine', 'blob_limit', 'blob_quota', 'return_retention', 'lives'}
local values = redis.call('HMGET', K.meta, unpack(kept))
now()
redis.call('DEL', K.meta)
for i, field in ipairs(kept) do
  if values[i] then redis.call('HSET', K.meta, field, values[i]) end
end
if past[1] or past[2] then
  redis.call('HSET', K.meta, 'epoch', string.format('%d', epoch + 1), 'seq', string.format('%d', seq), 'clock', noted(true))
end
return 1
