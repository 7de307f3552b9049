-- judge writes what a server found about a node, if the node is as it was then.
--
-- KEYS meta, node, wakeNode, nodes, suspects
-- ARGV node; then as read: run, era, since when it is quarantined, trials, next trial, probe; then the new values of these,
--   '' for no such field; then the reason
-- Returns 1, or 0 and nothing changes. Sent again: the same, as long as nothing else has happened to the node.
local wrong = wrongtype('hash', {K.node}) or wrongtype('list', {K.wakeNode}) or wrongtype('set', {K.nodes, K.suspects})
if wrong then return wrong end
local fields = {'run', 'era', 'quarantined', 'trials', 'trial_at', 'probe'}
local is = redis.call('HMGET', K.node, unpack(fields))
local was, want = {unpack(ARGV, #A + 1, #A + 6)}, {unpack(ARGV, #A + 7, #A + 12)}
local function at(values)
  for i = 1, 6 do
    if (is[i] or '') ~= values[i] then return false end
  end
  return true
end
if not at(was) then return at(want) and 1 or 0 end
local function set(field, value)
  if value == '' then redis.call('HDEL', K.node, field) else redis.call('HSET', K.node, field, value) end
end
counted(1)
redis.call('SADD', K.nodes, A.node)
for i, field in ipairs(fields) do set(field, want[i]) end
set('reason', ARGV[#ARGV])
if want[3] ~= '' or (tonumber(want[1]) or 0) > 0 then
  redis.call('SADD', K.suspects, A.node)
else
  redis.call('SREM', K.suspects, A.node)
end
token(K.wakeNode) -- a waiter may claim again, or learns when it may
return 1
