-- holder is the task that has a key, and what stands for its work. Its record says until when it has it, unless it lives, or a retry of
-- it. Once the record is gone the key expires; that of an older release does so in any case.
local function holder(key)
  local id = redis.call('GET', key)
  if not id then return end
  local function look(at) return redis.pcall('HMGET', K.task(at), 'state', 'outcome', 'retried_by', 'key_expires', 'key_work') end
  local first, _, whole = look(id), now()
  local t, expires = first, tonumber(first[4] or '')
  if not first.err and not first[1] and redis.call('TTL', key) == -1 then return end -- Redis has lost the record
  while expires and expires <= whole and not t.err and (not t[1] or ending(t[1], t[2])) do
    if not t[3] or t[3] == '' then return end -- it is gone, or is over and has no retry
    t = look(t[3])
  end
  return id, first[5] or nil
end

-- marks reads the marked tasks, which have keys, stand for others, or are of a plan, and which are there already: fewer are fresh then. It
-- returns {'no task', index} if what one repeats is not, and {'key', index, id} if the task that has its key does other work.
local function marks()
  local made = {}
  tasks = {}
  for i = 1, count do
    local t = {template = templates[several and tonumber(arg()) or 1], place = at}
    at = at + #t.template.own
    t.key, t.how, t.replays, t.more, t.needs = tonumber(arg()), arg(), arg(), args(), args()
    if t.key then
      local key = KEYS[firstkey + t.key]
      if t.how == 'retry' then
        local old = redis.call('HMGET', key, 'state', 'retried_by', 'plan', 'outcome', 'skipped', 'id', 'grows', 'queue')
        if not old[1] then return {'no task', i} end
        t.former = old
        t.old = old[2] and old[2] ~= '' and old[2] or nil
      else
        local work
        t.old, work = holder(key)
        if work and work ~= t.more[2] then return {'key', i, t.old} end
      end
      t.twin = not t.old and made[t.key] -- the same key twice in one request
      if t.twin and t.how ~= 'retry' and t.twin.more[2] ~= t.more[2] then return {'key', i, ''} end
      made[t.key] = made[t.key] or t
    end
    if t.old or t.twin then fresh = fresh - 1 end
    tasks[i] = t
  end
end

-- replayed tells a task that another one runs a round of it again, and needs it until it is archived itself.
local function replayed(key, by)
  local t = redis.pcall('HMGET', key, 'state', 'replayed_by', 'rev')
  if t.err or not t[1] then return end
  local others = t[2] and t[2] ~= '' and t[2] .. ' ' or ''
  if #others > 200 then others = string.match(string.sub(others, -200), ' (.*)$') end
  redis.call('HSET', key, 'replayed_by', others .. by, 'rev', string.format('%d', following(t[3])))
end

-- superseded takes a task that is repeated out of what its queue counts, if it was counted there: its retry counts in its place.
local function superseded(old)
  local queue, outcome = old[8] and old[8] ~= '' and old[8] or DEFAULT_QUEUE, ending(old[1], old[4])
  local tally = K.tally(queue)
  local n = outcome and redis.pcall('HMGET', tally, outcome, 'retried:' .. outcome) or {}
  if (tonumber(n[1] or '') or 0) > (tonumber(n[2] or '') or 0) then redis.pcall('HINCRBY', tally, 'retried:' .. outcome, 1) end
end

-- mark is the record of a new marked task, and whether it is held. It notes what others must know of it.
local function mark(t)
  local template = t.template
  local record, held, id = {unpack(template.record)}, template.held, template.id
  for _, text in ipairs(t.more) do record[#record + 1] = text end
  if A.plan ~= '' then
    held = enter(t, record) or held
    local state = held and A.held or A.open
    record[id + 2], record[id + 3] = state, '0:' .. state
  end
  local key = t.key and KEYS[firstkey + t.key]
  if t.how == 'retry' then
    redis.call('HSET', key, 'retried_by', t.id, 'rev', string.format('%d', following(redis.call('HGET', key, 'rev'))))
    superseded(t.former)
  elseif key then
    local _, whole = now()
    record[#record + 1], record[#record + 2] = 'key_expires', string.format('%d', t.how == 'end' and 0 or whole + tonumber(A.life))
    redis.call('SET', key, t.id)
  end
  if t.replays ~= '' then replayed(K.task(t.replays), t.id) end
  return record, held
end
