-- notify tells a page of the tasks that need tasks which have ended how those ended. Those that need not wait any longer, or never will
-- run, are left for the servers to move.
-- KEYS meta; then for each task: task, dependants, stuck
-- ARGV most (dependants to tell); then the ids of the tasks
-- Returns how many of the tasks, from the first on, have nobody left to tell. Sent again: the next page, or nothing changes. An error, and
-- nothing changes, if a key has another type.
local most, stamp, plans = tonumber(A.most), now(), {}

-- read looks at a task that has ended, and at its plan. It writes nothing.
local function read(id, k)
  local t = redis.pcall('HMGET', KEYS[k], 'state', 'outcome', 'plan', 'doomed_by', 'skipped')
  local wrong = wrongtype('list', {KEYS[k + 1], KEYS[k + 2]})
  local named = not t.err and t[3] and t[3] ~= '' and t[3]
  if named and not plans[named] then
    wrong = wrong or wrongtype('hash', {K.plan(named)}) or wrongtype('zset', {K.freed(named)})
    if wrong then return nil, wrong end
    local plan = redis.call('HMGET', K.plan(named), 'state', 'on_failure')
    plans[named] = {state = plan[1], on = plan[2], free = {}}
  end
  return {id = id, k = k, name = named, plan = plans[named], ended = named and ending(t[1], t[2]), skipped = t[5] == '1',
    cause = t[4] and t[4] ~= '' and t[4] or id}, wrong
end

local wrong, tasks = wrongtype('zset', {K.draining}), {}
for i = 1, #ARGV - #A do
  if not wrong then tasks[i], wrong = read(ARGV[#A + i], #K + 3 * i - 2) end
end
if wrong then return wrong end

-- fewer lowers what a dependant waits for and returns what is left; nil if somebody has removed or damaged it.
local function fewer(key)
  local left = redis.pcall('HINCRBY', key, 'waits', -1)
  if type(left) == 'number' and left >= 0 then return left end
  local state = redis.pcall('HGET', key, 'state')
  if type(state) == 'table' then return nil end
  if not state then
    redis.call('HDEL', key, 'waits')
    return nil
  end
  redis.call('HSET', key, 'waits', '0')
  return 0
end

-- tell is for most dependants one command: only those that wait for nothing more, or never will run, are read.
local function tell(t, entry)
  local id, kind = string.match(entry, '^(%d+):?(%a*)$')
  if not id then return end
  local key, v = K.task(id), verdict(kind, t.ended, t.skipped, t.plan.on)
  local left = v ~= 'wait' and fewer(key)
  if v == 'met' and left ~= 0 then return end
  local d = redis.pcall('HMGET', key, 'state', 'doomed_by')
  if d.err or d[1] ~= 'blocked' then return end
  if v == 'wait' then return redis.call('RPUSH', KEYS[t.k + 2], entry) end
  if v ~= 'met' and not d[2] then
    redis.call('HSET', key, 'doomed_by', t.cause, 'skipped', v == 'skip' and '1' or '')
  elseif left ~= 0 then
    return
  end
  local free = t.plan.free
  free[#free + 1], free[#free + 2] = id, id
end

local function finish(t, told)
  redis.call('ZREM', K.draining, 't' .. t.id)
  if told and relocate(KEYS[t.k + 2], KEYS[t.k + 1]) and t.plan.state == 'ready' then
    redis.call('HSET', K.plan(t.name), 'state', 'held', 'held', stamp, 'held_by', t.id)
    t.plan.state = 'held'
  end
end

local done = 0
for _, t in ipairs(tasks) do
  if most <= 0 then break end
  local listed = t.plan and redis.call('ZSCORE', K.draining, 't' .. t.id)
  local page = listed and redis.call('LPOP', KEYS[t.k + 1], most)
  for _, entry in ipairs(page or {}) do tell(t, entry) end
  if page then
    most = most - #page
    counted(1)
    if redis.call('EXISTS', KEYS[t.k + 1]) == 1 then break end
  end
  finish(t, page)
  done = done + 1
end

for name, plan in pairs(plans) do
  paged('ZADD', K.freed(name), plan.free)
  if #plan.free > 0 and plan.state == 'ready' then signal(stamp, {'p' .. name}) end
end
return done
