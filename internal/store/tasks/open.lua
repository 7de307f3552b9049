-- open creates tasks, all or none.
--
-- KEYS meta, taskID, request, open, due, buckets, queues, blocked, setAside; then pairs: ready, wake; then the keys that
--   tasks name: of a submission, or of a task that is repeated
-- ARGV ttl (of the request, in seconds), tasks (their number), open (state of open tasks), protocol (its version),
--   life (of submissions, in seconds), held (state of held tasks), plan (of all tasks, or ''), rules (their version, '' for any);
--   then 0, or what a step of the plan is opened with (lib/planned.lua): number of texts, followed by these
--   then the number of buckets, followed by their names
--   then the number of queues that must exist, followed by their names
--   then for each task: index of its bucket, '1' if it is held, start_after, end_before (or ''),
--     which of the keys says that it is there ('' or number, from 1), 'key' or 'retry', the id of a task that it replays or '', number of field values, fields and values,
--     number of tasks it needs, each as id or @index of one before it, and 'success', 'any' or 'failure'
--   The last one is the digest of what is asked for, in letters, or ''.
-- Returns {{id, '1' if it was there}...}. A refusal changes nothing:
--   {'rules'}: other rules are in force
--   {'other'}: the request was made for something else
--   {'no queue', name}
--   {'no task', index from 1}: the task to repeat does not exist
--   {'plan', what is wrong (lib/planned.lua), ...}
-- Sent again with the same request: the same ids, and nothing changes. An error, and nothing changes, if a task with a new
-- id exists already or a key has another type.
local function remembered(text)
  local first, last = string.match(text, '^(%d+) (%d+) ?%l*$')
  local ids = {}
  if first then
    for id = tonumber(first), tonumber(last) do ids[#ids + 1] = {string.format('%d', id), ''} end
    return ids
  end
  for id, old in string.gmatch(text, '(%d+)(%*?)') do ids[#ids + 1] = {id, old == '*' and '1' or ''} end
  return ids
end
local digest = table.remove(ARGV)
local before = redis.call('GET', K.request)
if before then
  local was = string.match(before, '%l+$') -- none of a request of an older release
  if was and digest ~= '' and was ~= digest then return {'other'} end
  return remembered(before)
end

local meta = redis.pcall('HMGET', K.meta, 'adopted', 'rules')
if A.rules ~= '' and not meta.err and (meta[2] or '0') ~= A.rules then return {'rules'} end

local growth, names, needed = args(), args(), args()
for _, queue in ipairs(needed) do
  if redis.call('SISMEMBER', K.queues, queue) == 0 then return {'no queue', queue} end
end

local buckets, wakes, firstkey = {}, {}, #K + 2 * #names
for i = 1, #names do buckets[i], wakes[i] = KEYS[#K + 2 * i - 1], KEYS[#K + 2 * i] end
local wrong = wrongtype('hash', {K.meta, K.setAside}) or wrongtype('set', {K.buckets, K.queues}) or wrongtype('zset', {K.open, K.due, K.blocked}) or wrongtype('zset', buckets)
  or wrongtype('list', wakes)
if wrong then return wrong end

-- Read what is asked for, and which of it is there already.
local stamp = now()
local tasks, made, fresh = {}, {}, 0
for i = 1, tonumber(A.tasks) do
  local t = {bucket = tonumber(arg()), held = arg() == '1', start = arg(), deadline = arg(), key = tonumber(arg()), how = arg(), replays = arg()}
  t.values, t.needs = args(), args()
  if t.key then
    local key = KEYS[firstkey + t.key]
    if t.how == 'retry' then
      local old = redis.call('HMGET', key, 'state', 'retried_by', 'rev', 'plan', 'outcome', 'skipped', 'feeds', 'id', 'grows')
      if not old[1] then return {'no task', i} end
      t.former = old
      t.rev = following(old[3])
      t.old = old[2] and old[2] ~= '' and old[2] or nil
    else
      t.old = redis.call('GET', key) or nil
    end
    t.twin = not t.old and made[t.key] -- the same key twice in one request
    made[t.key] = made[t.key] or t
  end
  if not t.old and not t.twin then fresh = fresh + 1 end
  tasks[i] = t
end

local planned, refused = plans(A.plan, stamp, growth)
refused = refused or planned.resolve(tasks)
if refused then return refused end

local first = (tonumber(redis.call('GET', K.taskID) or '0') or 0) + 1
local hashes = {}
for i = 1, fresh do
  local id = string.format('%d', first - 1 + i)
  hashes[i] = K.task(id)
end
if fresh > 0 and redis.call('EXISTS', unpack(hashes)) > 0 then
  return redis.error_reply('ERR task_id is behind the tasks: set it to the highest id there is')
end
local last = fresh > 0 and redis.call('INCRBY', K.taskID, fresh) or first - 1

-- The watermark of known ids moves along while nobody else makes ids.
local adopted = meta[1]
if not adopted then
  redis.call('HSETNX', K.meta, 'protocol', A.protocol)
  adopted = '0'
  redis.call('HSET', K.meta, 'adopted', '0')
end
if tonumber(adopted) == first - 1 then
  redis.call('HSET', K.meta, 'adopted', last)
end

-- An id from before a flush may be that of a dead letter.
if fresh > 0 and redis.call('EXISTS', K.setAside) == 1 then
  local ids = {}
  for i = 1, fresh do ids[i] = string.format('%d', first - 1 + i) end
  redis.call('HDEL', K.setAside, unpack(ids))
end

local new = 0
for _, name in ipairs(names) do new = new + redis.call('SADD', K.buckets, name) end
if new > 0 then
  redis.call('HINCRBY', K.meta, 'buckets', new)
  redis.call('PUBLISH', K.rules, '1')
end

local ready = {}
local function add(v, field, value)
  v[#v + 1] = field
  v[#v + 1] = value
end

-- replayed tells a task that another one runs a round of it again, and needs it until it is archived itself.
local function replayed(key, by)
  local t = redis.pcall('HMGET', key, 'state', 'replayed_by', 'rev')
  if t.err or not t[1] then return end
  local others = t[2] and t[2] ~= '' and t[2] .. ' ' or ''
  if #others > 200 then others = string.match(string.sub(others, -200), ' (.*)$') end
  redis.call('HSET', key, 'replayed_by', others .. by, 'rev', string.format('%d', following(t[3])))
end

-- write makes one task. Where it waits, its score is its start_after if one was given, also
-- one in the past, else now: from then on it is in line.
local function write(t, text)
  local v = t.values
  if planned then t.held = planned.enter(t, text, v) end
  local state = t.held and A.held or A.open
  add(v, 'id', text)
  add(v, 'state', state)
  add(v, '0:' .. state, stamp)
  redis.call('HSET', K.task(text), unpack(v))
  happened(text, '0', '', state, 'create', 'manager', '')
  redis.call('ZADD', t.held and K.blocked or K.open, t.held and stamp or t.start, text)
  if t.deadline ~= '' then redis.call('ZADD', K.due, moment(t.deadline), text) end
  if not t.held then
    local start, bucket, member = tonumber(t.start) > 0 and moment(t.start) or stamp, buckets[t.bucket], string.char(96 + #text) .. text
    redis.call('ZADD', bucket, start, member)
    -- Waiters must learn of a start that is earlier than all they know.
    if tonumber(start) <= tonumber(stamp) or redis.call('ZRANGE', bucket, 0, 0)[1] == member then ready[t.bucket] = true end
  end
  if t.how == 'retry' then
    redis.call('HSET', KEYS[firstkey + t.key], 'retried_by', text, 'rev', string.format('%d', t.rev))
  elseif t.key then
    redis.call('SET', KEYS[firstkey + t.key], text, 'EX', A.life)
  end
  if t.replays ~= '' then replayed(K.task(t.replays), text) end
end

local answer, texts, id = {}, {}, first - 1
for i, t in ipairs(tasks) do
  local old = t.old or t.twin and t.twin.id
  if not old then
    id = id + 1
    t.id = string.format('%d', id)
    write(t, t.id)
  end
  answer[i] = {old or t.id, old and '1' or ''}
  texts[i] = old and old .. '*' or t.id
end
planned.done(fresh)
for bucket in pairs(ready) do token(wakes[bucket]) end
local memory = fresh == #tasks and string.format('%d %d', first, last) or '=' .. table.concat(texts, ' ')
redis.call('SET', K.request, digest ~= '' and memory .. ' ' .. digest or memory, 'EX', A.ttl)
return answer
