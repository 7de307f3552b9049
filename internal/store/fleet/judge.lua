-- judge writes what a server found about a node, if the node is as it was then.
-- KEYS meta, node, wakeNode, nodes, suspects
-- ARGV node; then as read: run, era, since when it is quarantined, trials, next trial, probe; then the new values of these,
--   '' for no such field; then the reason
-- Returns 1, or 0 and nothing changes. Sent again: the same, as long as nothing else has happened to the node.
local wrong = wrongtype('hash', {K.node}) or wrongtype('list', {K.wakeNode}) or wrongtype('set', {K.nodes, K.suspects})
if wrong then return wrong end
local fields = {'run', 'era', 'quarantined', 'trials', 'trial_at', 'probe'}
local is = redis.call('HMGET', K.node, unpack(fields))
local function at(first)
  for i = 1, #fields do
    if (is[i] or '') ~= ARGV[first + i] then return false end
  end
  return true
end
local want = #A + #fields
if not at(#A) then return at(want) and 1 or 0 end
counted(1)
redis.call('SADD', K.nodes, A.node)
fields[#fields + 1] = 'reason'
for i, field in ipairs(fields) do
  local value = ARGV[want + i]
  if value == '' then redis.call('HDEL', K.node, field) else redis.call('HSET', K.node, field, value) end
end
local suspect = ARGV[want + 3] ~= '' or (tonumber(ARGV[want + 1]) or 0) > 0
redis.call(suspect and 'SADD' or 'SREM', K.suspects, A.node)
token(K.wakeNode) -- a waiter may claim again, or learns when it may
return 1
