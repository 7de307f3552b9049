-- recount removes ended rounds from the sets and hashes that count rounds, because a foreign client has moved their tasks, and wakes a
-- waiter for the place.
-- KEYS meta; then sets of rounds, and hashes of what rounds have got of a node
-- ARGV running (state whose tasks count); then for each key: queue or '', node or '', whose rounds it counts; number of ids to look at, ids
-- Returns how many were taken out. Keys of another type are left alone.
local function runs(id, queue, node)
  local t = redis.pcall('HMGET', K.task(id), 'state', 'round', 'queue')
  if t.err or t[1] ~= A.running or not t[2] then return false end
  local of = t[3] and t[3] ~= '' and t[3] or DEFAULT_QUEUE
  local r = redis.call('HMGET', K.task(id), t[2] .. ':claim', t[2] .. ':node')
  return r[1] and (queue == '' or of == queue) and (node == '' or r[2] == node)
end

local all = 0
for k = #K + 1, #KEYS do
  local queue, node, gone = arg(), arg(), 0
  local kind = redis.call('TYPE', KEYS[k])
  local drop = (kind.ok or kind) == 'hash' and 'HDEL' or 'SREM'
  for _, id in ipairs(args()) do
    if not runs(id, queue, node) and redis.pcall(drop, KEYS[k], id) == 1 then gone = gone + 1 end
  end
  if gone > 0 then vacant(queue, node) end
  all = all + gone
end
return all
