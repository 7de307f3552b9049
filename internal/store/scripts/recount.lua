-- recount takes out of what counts rounds those that are none any more, because a
-- foreign client has moved the task, and wakes who waits for the place.
--
-- KEYS[1] meta   KEYS[2..] sets of rounds, and hashes of what rounds have got of a node
-- ARGV[1] task key prefix   ARGV[2] state whose tasks count   ARGV[3..12] what counts a round (lib/slots.lua)
-- then for each key: queue or '', node or '', whose rounds it counts; number of ids to look at, ids
-- Returns how many were taken out. Keys of another type are left alone.
local p = {unpack(ARGV, 3, 12)}

local function counted(id, queue, node)
  local t = redis.pcall('HMGET', ARGV[1] .. id, 'state', 'round', 'queue')
  if t.err or t[1] ~= ARGV[2] or not t[2] then return false end
  local of = t[3] and t[3] ~= '' and t[3] or p[10]
  local r = redis.call('HMGET', ARGV[1] .. id, t[2] .. ':claim', t[2] .. ':node')
  return r[1] and (queue == '' or of == queue) and (node == '' or r[2] == node)
end

local at = 12
local function arg()
  at = at + 1
  return ARGV[at]
end

local function recount(key)
  local queue, node, n, gone = arg(), arg(), tonumber(arg()), 0
  local kind = redis.call('TYPE', key)
  local drop = (kind.ok or kind) == 'hash' and 'HDEL' or 'SREM'
  for i = 1, n do
    local id = arg()
    if not counted(id, queue, node) and redis.pcall(drop, key, id) == 1 then gone = gone + 1 end
  end
  if gone > 0 then vacant(p, queue, node) end
  return gone
end

local gone = 0
for i = 2, #KEYS do gone = gone + recount(KEYS[i]) end
return gone
