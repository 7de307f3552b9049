-- What open does with the plan that its tasks belong to: first resolve, which writes nothing and answers what is wrong; then enter for each
-- new task, and enrol. growth, of a call that opens tasks of a step, is {index of the step, how many of its tasks were opened before, how
-- many are now, how many there will be, the task whose lines they are for or ''}.
local id, key, step = A.plan, K.plan(A.plan), growth[1]
local plan, replaced, known = {}, 0, {} -- state, on_failure, held_by, job ('1' if its tasks run at once) and window; how many tasks stand for former ones; those that are needed

-- within is the task of this call that a need means, if it means one.
local function within(need) return tasks[tonumber(string.match(need, '^@(%d+)$') or '')] end

-- advance notes that tasks of a step were opened, and reports whether it was the last of them.
local function advance(first, last)
  local name = step .. ':'
  local was = redis.call('HGET', K.growth(id), name .. 'tasks')
  local before, upto = string.match(was or '', '^(.-)(%d+)$')
  if upto and tonumber(upto) + 1 == first then
    was = string.match(before, '%-$') and before or was .. '-'
  else
    was = (was and was .. ' ' or '') .. string.format('%d-', first)
  end
  local whole = growth[3] == growth[4]
  redis.call('HSET', K.growth(id), name .. 'state', whole and 'opened' or 'opening', name .. 'next', growth[3],
    name .. 'of', growth[4], name .. 'source', growth[5], name .. 'tasks', was .. string.format('%d', last))
  return whole
end

-- provider reads a task that is needed: the last one that it was retried by.
local function provider(need)
  local last = need
  for _ = 1, 100 do
    local t = redis.pcall('HMGET', K.task(last), 'state', 'plan', 'retried_by', 'feeds')
    if t.err or not t[1] then return nil end
    if not t[3] or t[3] == '' then
      local found = {id = last, plan = t[2], feeds = t[4] == '1'}
      if t[1] == 'blocked' then return found end -- as nearly all do while a plan is built
      local e = redis.call('HMGET', K.task(last), 'outcome', 'round', 'doomed_by', 'skipped')
      found.ended, found.skipped, found.cause = ending(t[1], e[1]), e[4] == '1', e[3]
      if found.ended == 'succeeded' then
        local r = redis.call('HMGET', K.task(last), (e[2] or '') .. ':result', (e[2] or '') .. ':output_bytes')
        found.cut = not r[1] and r[2]
      end
      return found
    end
    last = t[3]
  end
end

-- look says what is wrong with a need of the task at index i.
local function look(i, need)
  local other = within(need)
  if other then
    need = other.old
    if not need then return nil end
  end
  known[need] = known[need] or provider(need)
  local found = known[need]
  if not found then return {'plan', 'missing', i, need} end
  return wrongtype('list', {K.dependants(found.id)}) or found.plan ~= id and {'plan', 'foreign', i, need}
    or found.cut and {'plan', 'cut', i, need} or nil
end

local function repeats(i, t)
  local old = t.former
  if string.match(old[3] or '', '%d+') ~= id then return {'plan', 'foreign', i, old[6] or ''} end
  if not ending(old[1], old[4]) then return {'plan', 'alive', i, old[6]} end
  return wrongtype('zset', {K.draining}) or wrongtype('list', {K.dependants(old[6]), K.stuck(old[6])})
    or redis.call('ZSCORE', K.draining, 't' .. old[6]) and {'plan', 'busy', i, old[6]} or nil
end

-- resolve returns what is wrong: {'plan', 'none'}, {'plan', 'refuses', state}, {'plan', 'grown'} if the step is further than growth says,
-- or for the task at an index {'plan', what, index, id}, where what is 'missing', 'foreign', 'cut', 'busy' or 'alive'.
local function resolve()
  if id == '' then -- a task of a plan is repeated there only
    for i, t in ipairs(tasks) do
      if t.former and string.find(t.former[3] or '', '%d') then return {'plan', 'foreign', i, t.former[6] or ''} end
    end
    return nil
  end
  local wrong = wrongtype('hash', {key}) or wrongtype('list', {K.planTasks(id)}) or wrongtype('zset', {K.freed(id)})
    or step and wrongtype('hash', {K.growth(id)})
  if wrong then return wrong end
  plan = redis.call('HMGET', key, 'state', 'on_failure', 'held_by', 'job', 'window')
  if not plan[1] then return {'plan', 'none'} end
  if step then
    if plan[1] ~= 'ready' then return {'plan', 'refuses', plan[1]} end
    local at = redis.call('HMGET', K.growth(id), 'template', step .. ':next')
    if not at[1] or (at[2] or '0') ~= growth[2] then return {'plan', 'grown'} end
  end
  local open = plan[1] == 'building' or plan[1] == 'ready' or plan[1] == 'held'
  for i, t in ipairs(tasks) do
    local new = not t.old and not t.twin
    local again = t.former and (plan[1] == 'failed' or plan[4] and plan[1] == 'completed')
    if new and not (open or again) then return {'plan', 'refuses', plan[1]} end
    if new and plan[4] and #t.needs > 0 then return {'plan', 'foreign', i, t.needs[1]} end
    wrong = new and t.former and repeats(i, t)
    for n = 1, #t.needs, 2 do
      local other = within(t.needs[n])
      if other and not other.old then (other.twin or other).feeds = true end
      wrong = wrong or new and look(i, t.needs[n])
    end
    if wrong then return wrong end
  end
end

-- await makes a task wait for another one, if it has to.
local function await(t, need, kind, w)
  local other = within(need)
  if other then
    need = other.old or other.twin and other.twin.id or other.id
    known[need] = known[need] or provider(need)
  end
  local found = known[need]
  w.needs[#w.needs + 1] = kind == 'success' and need or need .. ':' .. kind
  if w.seen[need] then return end
  w.seen[need] = true
  local v = verdict(kind, found.ended, found.skipped, plan[2])
  if v == 'wait' then
    w.waits = w.waits + 1
    redis.call('RPUSH', K.dependants(found.id), kind == 'success' and t.id or t.id .. ':' .. kind)
    if not found.feeds then redis.call('HSET', K.task(found.id), 'feeds', '1') end
    found.feeds = true
  elseif v ~= 'met' and not w.doomed then
    w.doomed, w.skipped = found.cause and found.cause ~= '' and found.cause or found.id, v == 'skip'
  end
end

-- replace puts a task in the place of the one that it repeats, with whatever waits for that.
local function replace(t)
  local old = t.former
  replaced = replaced + 1
  if relocate(K.dependants(old[6]), K.dependants(t.id)) then t.feeds = true end
  if old[7] == '1' then t.grows, t.feeds = true, true end
  known[old[6]] = {id = t.id, plan = id, feeds = t.feeds} -- for those of the same request that need it
  account(id, sum({}, ending(old[1], old[4]), old[5] == '1', -1))
  if plan[4] then forgive(id, old[6]) end
  if plan[3] == old[6] or plan[1] == 'failed' or plan[1] == 'completed' then plan[1] = 'ready' end
end

-- enter adds the fields of a new task, and returns whether it is blocked.
local function enter(t, v)
  local w = {needs = {}, seen = {}, waits = 0}
  if t.former then replace(t) end
  for n = 1, #t.needs, 2 do await(t, t.needs[n], t.needs[n + 1], w) end
  v[#v + 1], v[#v + 2] = 'plan', plan[4] and (plan[5] and 'w' or 'j') .. id or id
  if t.feeds then v[#v + 1], v[#v + 2] = 'feeds', '1' end
  if t.grows then v[#v + 1], v[#v + 2] = 'grows', '1' end
  if #w.needs > 0 then
    v[#v + 1], v[#v + 2] = 'needs', table.concat(w.needs, ' ')
    v[#v + 1], v[#v + 2] = 'waits', string.format('%d', w.waits)
  end
  if w.doomed then v[#v + 1], v[#v + 2] = 'doomed_by', w.doomed end
  if w.skipped then v[#v + 1], v[#v + 2] = 'skipped', '1' end
  if w.waits > 0 and not w.doomed then return true end
  local runs = plan[1] == 'ready' and not plan[5] or plan[1] == 'building' and plan[4] == '1'
  if not w.doomed and runs then return false end
  redis.call('ZADD', K.freed(id), t.id, t.id)
  t.free = true
  return true
end

local function enrol()
  local ids, free, looks = {}, false, false
  for _, t in ipairs(tasks) do
    if t.id then ids[#ids + 1] = t.id end
    free = free or t.free
    looks = looks or t.grows
  end
  if #ids == 0 then return end
  redis.call('RPUSH', K.planTasks(id), unpack(ids))
  local now = redis.call('HMGET', key, 'state', 'total', 'left', 'growing')
  local added = fresh - replaced
  redis.call('HSET', key, 'total', string.format('%d', amount(now[2]) + added), 'left', string.format('%d', amount(now[3]) + added))
  if plan[1] ~= now[1] then
    redis.call('HSET', key, 'state', plan[1])
    redis.call('HDEL', key, 'held_by', 'ended')
    free, looks = true, true
  end
  if step and advance(tonumber(ids[1]), tonumber(ids[#ids])) then
    redis.call('HSET', key, 'growing', string.format('%d', amount(now[4]) - 1))
  end
  if looks then nudge(id, stamp) end
  if free and plan[1] == 'ready' then signal(stamp, {'p' .. id}) end
end
