-- strays finds members of an index that do not belong there, by what the tasks themselves say. As the script `unlist` it takes them out as
-- well. A task whose key is of another type is damaged: it becomes a dead letter, and leaves all indices.
-- KEYS meta; then the index: due, ready, held, stop, archivedAs or a state
-- ARGV kind (due, ready, held, stop, archived or state), of (name of the worker, or the outcome), open, running (states),
--   queue, env, labels, priority, resources, class (of the bucket); then members
-- Returns the members that are there and do not belong there; in a state, the malformed ids.
local index, kind = KEYS[#K + 1], A.kind
local sorted = kind ~= 'held' and kind ~= 'stop'

local function idof(member)
  local id = string.match(member, kind == 'stop' and '^d?([1-9]%d*)$' or kind == 'ready' and '^%l([1-9]%d*)$' or '^[1-9]%d*$')
  return id and (kind ~= 'ready' or member == string.char(96 + #id) .. id) and id or nil
end

local function runs(t, key, member)
  if t[1] ~= A.running or not t[2] then return false end
  local r = redis.call('HMGET', key, t[2] .. ':worker', t[2] .. ':incarnation')
  return r[1] == A.of and (kind == 'held' and r[2] or kind == 'stop' and (string.sub(member, 1, 1) == 'd' or t[8] and t[8] ~= ''))
end

local function waits(t)
  local queue = t[3] and t[3] ~= '' and t[3] or DEFAULT_QUEUE
  return t[1] == A.open and queue == A.queue and (t[4] or '') == A.env and (t[5] or '') == A.labels
    and (tonumber(t[6] or '') or 0) == tonumber(A.priority) and (t[7] or '') == A.resources and (t[10] or '') == A.class
end

local function belongs(member)
  local id = idof(member)
  if not id or kind == 'state' then return id end
  local key = K.task(id)
  local t = redis.pcall('HMGET', key, 'state', 'round', 'queue', 'env', 'labels', 'priority', 'resources', 'cancel_requested',
    'outcome', 'class')
  if t.err then return true end
  if kind == 'due' then -- a report keeps its deadline until it is settled, if a foreign client has made it
    return t[1] == 'blocked' or t[1] == 'executed' or t[1] == A.open or t[1] == A.running
  end
  if kind == 'ready' then return waits(t) end
  if kind == 'archived' then return t[1] == 'archived' and t[9] == A.of end
  return runs(t, key, member)
end

local wrong = wrongtype(sorted and 'zset' or 'set', {index})
if wrong then return wrong end
local found = {}
for i = #A + 1, #ARGV do
  local there = redis.call(sorted and 'ZSCORE' or 'SISMEMBER', index, ARGV[i])
  if there and there ~= 0 and not belongs(ARGV[i]) then
    found[#found + 1] = ARGV[i]
    if not dry then redis.call(sorted and 'ZREM' or 'SREM', index, ARGV[i]) end
  end
end
return found
