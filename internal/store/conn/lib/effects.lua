-- Effects: what moves mean beyond their tasks. It is noted move by move, and written once for all.
local tallies, planned, jobs, feeding, ended, recorded = {}, {}, {}, {}, false, {}

-- placed is what is noted of a plan.
local function placed(plan)
  planned[plan] = planned[plan] or {moved = {}, ended = {}}
  return planned[plan]
end

-- inplan notes what a move means to the plan of the task: what leaves `freed:`, what is left, and which dependants must hear of an end.
-- The field of a task of a job is j and the number, or w if it has a window: nothing waits for such a task.
local function inplan(field, id, key, kind)
  local plan = string.match(field, '%d+') or ''
  local of = placed(plan)
  if kind.from == 'blocked' then of.moved[#of.moved + 1] = id end
  if kind.wake == 'ended' then
    local t = plan == field and redis.call('HMGET', key, 'feeds', 'skipped', 'grows') or {}
    of.job, of.windowed = plan ~= field, string.sub(field, 1, 1) == 'w'
    of.ended[#of.ended + 1] = {id = id, outcome = kind.to, skipped = t[2] == '1', grows = t[3] == '1'}
    if t[1] == '1' then feeding[#feeding + 1] = 't' .. id end
  elseif kind.to == 'blocked' and redis.pcall('HGET', K.plan(plan), 'state') == 'held' then
    redis.pcall('ZADD', K.freed(plan), id, id)
  end
end

-- inrecord notes the end of a task whose record is to hear of it: its field `plan` is r.
local function inrecord(key)
  local of = redis.call('HGET', key, 'record')
  if of then recorded[of] = (recorded[of] or 0) + 1 end
end

-- lost notes in a plan that a part of what one of its rounds gave is lost, so that nobody has to look for that in all of them.
local function lost(plan)
  if redis.pcall('HEXISTS', K.plan(plan), 'state') == 1 then redis.call('HSET', K.plan(plan), 'cut', '1') end
end

local function note(id, key, kind, t, round)
  if kind.h and t[12] then vacate(id, t[12], t[11] or '', t[5] or '', t[13] or nil) end
  if (kind.g or kind.b) and meta_quarantine and meta_quarantine ~= 'off' then learn(id, kind.g, key, t[10], t[11]) end
  if kind.wake == 'ended' then
    local queue = t[5] and t[5] ~= '' and t[5] or DEFAULT_QUEUE
    local of = tallies[queue] or {}
    tallies[queue] = of
    of[kind.to] = (of[kind.to] or 0) + 1
    ended = true
  end
  local plan = t[6]
  if plan and kind.to == 'succeeded' and string.sub(plan, 1, 1) == 'j' then
    jobs[plan] = (jobs[plan] or 0) + 1
  elseif plan == 'r' then
    if kind.wake == 'ended' then inrecord(key) end
  elseif plan then
    inplan(plan, id, key, kind)
  end
  if plan and kind.p then lost(string.match(plan, '%d+') or '') end
  happened(id, round, kind.from, kind.s and kind.via or kind.to, kind.event, kind.actor, kind.writer)
  if kind.s then happened(id, round, kind.via, kind.to, 'settle', kind.actor, kind.writer) end
  if kind.a then happened(id, round, kind.to, 'archived', 'archive', kind.actor, kind.writer) end
end

local function inplans()
  --[[lib plans]]
  for id, of in pairs(planned) do
    if #of.moved > 0 then redis.pcall('ZREM', K.freed(id), unpack(of.moved)) end
    local ends
    for _, t in ipairs(of.ended) do ends = sum(ends or {}, t.outcome, t.skipped, 1) end
    local left = of.left and remaining(K.plan(id), of.left)
    if ends then
      local bad
      left, bad = account(id, ends)
      if bad and of.job and bad - ends.bad < MOST_FAILURES then blame(id, of.ended) end
    end
    for _, t in ipairs(of.ended) do
      if t.grows then sourced(id, t.id, t.outcome, t.skipped, wall.text) end
    end
    if left and left <= 0 then over(id, wall.text) end
    if of.windowed and room(id) > 0 then signal(wall.text, {'p' .. id}) end
  end
  if #feeding > 0 then signal(wall.text, feeding) end
end

local function conclude()
  release()
  for node in pairs(praised) do forget(node) end
  for queue, of in pairs(tallies) do
    for outcome, n in pairs(of) do redis.pcall('HINCRBY', K.tally(queue), outcome, n) end
  end
  for job, n in pairs(jobs) do -- most are not over, which is all there is to do
    local plan = string.sub(job, 2)
    local left = redis.pcall('HINCRBY', K.plan(plan), 'left', -n)
    if type(left) ~= 'number' or left <= 0 then placed(plan).left = left end
  end
  if next(planned) then inplans() end
  for of, n in pairs(recorded) do
    local kind, name = string.match(of, '^(%l+):(.*)$')
    if kind and redis.pcall('EXISTS', K.record(of)) == 1 then redis.pcall('ZADD', K.recordsEnded(kind), 'INCR', n, name) end
  end
  local new = 0
  for name in pairs(filled) do new = new + redis.call('SADD', K.buckets, name) end -- it may have been pruned
  if new > 0 then -- nobody waits there
    redis.call('HINCRBY', K.meta, 'buckets', new)
    redis.call('PUBLISH', K.rules, '1')
  end
  for list in pairs(wakes) do token(list) end
  if ended then redis.call('PUBLISH', K.changed, '1') end
end
