-- steer changes the state of a plan, if it is in one that allows it.
-- KEYS meta, plan, planTasks, growth, plans
-- ARGV id, to (state), by (who holds it, or lets one go on that waits for another, '' for nobody); then the states from which it may go there
-- Returns {1, state}, {0, state} if it is there already, or over where it was to be ready, {-1, state} if it cannot, or {-2} if there is no
-- such plan; then nothing changes, but for who holds a job that waits for others: it stays held after these then. A job that comes after
-- others is held until these are over, or cancelled. One that has no tasks, or of which none is there any more, goes where it would be ready.
local wrong = wrongtype('hash', {K.growth}) or wrongtype('zset', {K.plans}) or wrongtype('list', {K.planTasks})
if wrong then return wrong end

-- await looks at what a job comes after. If an end of these is not what it waits for, it returns the plan, or what is wrong with that;
-- else it makes the job one of those that are told, and returns nil, how many it waits for, and one of them.
local function await(after)
  local found, last = {}, nil
  for id, kind in string.gmatch(after, '(%d+):?(%a*)') do
    local t = redis.pcall('HMGET', K.plan(id), 'state', 'left', 'before')
    if t.err then return t end
    local state = t[1]
    local over = not state or (state == 'completed' or state == 'failed' or state == 'cancelled') and amount(t[2]) <= 0
    if over and not meets(kind, state) then return id end
    if not over then found[id], last = (t[3] and t[3] .. ' ' or '') .. A.id .. ':' .. kind, id end
  end
  local n = 0
  for id, before in pairs(found) do
    redis.call('HSET', K.plan(id), 'before', before)
    n = n + 1
  end
  return nil, n, last
end

local state = redis.call('HGET', K.plan, 'state')
if not state then return {-2} end
-- One that is over has been ready: without tasks it was completed at once.
local gate = redis.call('HMGET', K.plan, 'awaits', 'doomed_by') -- of a job that waits for others, or was cancelled by one
if state == 'held' and A.to == state and gate[1] then redis.call('HSET', K.plan, 'held_by', A.by) end
if state == A.to or A.to == 'ready' and (state == 'completed' or state == 'failed') then return {0, state} end
if A.to == 'ready' and A.by == '' and (gate[1] or gate[2]) then return {0, state} end
local may = false
for i = #A + 1, #ARGV do may = may or ARGV[i] == state end
if not may then return {-1, state} end
local stamp = now()
local job = redis.call('HMGET', K.plan, 'job', 'total', 'purged', 'after', 'before', 'bad')
local listed = redis.call('LLEN', K.planTasks) -- with those that were retried, which are not in the total
if A.to == 'ready' and job[1] and math.max(amount(job[2]), listed) <= amount(job[3]) then
  local ended = amount(job[6]) > 0 and 'failed' or 'completed'
  if job[5] then follow(A.id, job[5], ended, stamp) end
  redis.call('DEL', K.plan, K.planTasks)
  redis.call('ZREM', K.plans, A.id)
  counted(1)
  return {1, ended}
end
local to, by = A.to, A.by
if to == 'ready' and state == 'building' and job[4] then
  local doomed, awaits, of = await(job[4])
  if type(doomed) == 'table' then return doomed end
  if doomed then
    to = 'cancelled'
    redis.call('HSET', K.plan, 'doomed_by', 'j' .. doomed)
  elseif awaits > 0 then
    to, by = 'held', 'job j' .. of
    redis.call('HSET', K.plan, 'awaits', awaits)
  end
end
redis.call('HSET', K.plan, 'state', to, to, stamp)
if to == 'held' then redis.call('HSET', K.plan, 'held_by', by) else redis.call('HDEL', K.plan, 'held_by', 'awaits') end
counted(1)
if to == 'cancelled' then
  redis.call('DEL', K.growth)
  redis.call('HDEL', K.plan, 'growing', 'nudges', 'growth_error')
end
nudge(A.id, stamp)
over(A.id, stamp)
signal(stamp, {'p' .. A.id})
return {1, redis.call('HGET', K.plan, 'state')}
