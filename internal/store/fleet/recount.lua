-- recount removes ended rounds from the sets and hashes that count rounds, because a
-- foreign client has moved their tasks, and wakes a waiter for the place.
--
-- KEYS meta; then sets of rounds, and hashes of what rounds have got of a node
-- ARGV running (state whose tasks count); then for each key: queue or '', node or '', whose rounds it counts;
--   number of ids to look at, ids
-- Returns how many were taken out. Keys of another type are left alone.

local function counted(id, queue, node)
  local t = redis.pcall('HMGET', K.task(id), 'state', 'round', 'queue')
  if t.err or t[1] ~= A.running or not t[2] then return false end
  local of = t[3] and t[3] ~= '' and t[3] or DEFAULT_QUEUE
  local r = redis.call('HMGET', K.task(id), t[2] .. ':claim', t[2] .. ':node')
  return r[1] and (queue == '' or of == queue) and (node == '' or r[2] == node)
end

local function recount(key)
  local queue, node, n, gone = arg(), arg(), tonumber(arg()), 0
  local kind = redis.call('TYPE', key)
  local drop = (kind.ok or kind) == 'hash' and 'HDEL' or 'SREM'
  for i = 1, n do
    local id = arg()
    if not counted(id, queue, node) and redis.pcall(drop, key, id) == 1 then gone = gone + 1 end
  end
  if gone > 0 then vacant(queue, node) end
  return gone
end

local gone = 0
for i = #K + 1, #KEYS do gone = gone + recount(KEYS[i]) end
return gone
