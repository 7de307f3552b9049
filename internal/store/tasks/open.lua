-- open creates tasks, all or none.
-- KEYS meta, taskID, request, open, due, buckets, queues, blocked, setAside; then pairs: ready, wake; then the keys that
--   tasks name: of a submission, or of a task that is repeated
-- ARGV ttl (of the request, in seconds; 0 where a record remembers it), tasks (their number), open (state of open tasks), protocol (its version),
--   life (of keys, in seconds), held (state of held tasks), plan (of all tasks, or ''), rules (their version, '' for any),
--   digest (of what is asked for, in letters, or ''), due ('1' if a task has an end_before), marked ('1' if tasks are of a plan
--   that is no job, have keys, or stand for others);
--   then 0, or what a step of the plan is opened with (lib/planned.lua), or how the record is to be written that goes along
--     (lib/recorded.lua): number of texts, followed by these
--   then the number of buckets, followed by their names
--   then the number of queues that must exist, followed by their names
--   then the number of templates, each: index of its bucket, '1' if its tasks are held, the places of the values of start_after and
--     end_before, number of fields and values, these, number of values in which its tasks differ, their places
--   then for each task: the index of its template if there are several, the values in which it differs; of marked ones also
--     which of the keys says that it is there ('' or number, from 1), 'retry' or until when it has its key, the id of a task that it replays
--     or '', number of further fields and values, these (of one with a key first what stands for its work), number of tasks it needs, each
--     as id or @index of one before it, and 'success', 'any' or 'failure'
-- Returns {'opened', ids} as the request remembers them: "first last", or "=" and each id, with "*" if it was there; then the digest.
-- A refusal changes nothing: {'rules'}: other rules are in force; {'other'}: the request was made for something else; {'no queue', name};
-- {'no task', index from 1}: the task to repeat does not exist; {'key', index from 1, id}: that task has its key and does
-- other work, '' if it is one of the request; {'plan', what is wrong (lib/planned.lua), ...}; {'record', version}: it is
-- another one now. With a record the ids are followed by its version.
-- Sent again with the same request: the same ids, and nothing changes. An error, and nothing changes, if a task with a new
-- id exists already or a key has another type.
local before = redis.call('GET', K.request)
if before then
  local was = string.match(before, '%l+$') -- none of a request of an older release
  if was and A.digest ~= '' and was ~= A.digest then return {'other'} end
  return {'opened', before}
end

if A.rules ~= '' and (meta_rules or '0') ~= A.rules then return {'rules'} end
local growth, names, needed = args(), args(), args()
for _, queue in ipairs(needed) do
  if redis.call('SISMEMBER', K.queues, queue) == 0 then return {'no queue', queue} end
end

-- Look at all that is written below: what is not read here is asked for its type.
local stamp, count, firstkey = now(), tonumber(A.tasks), #K + 2 * #names
local aside = redis.call('HLEN', K.setAside) > 0
--[[lib templates]]
local several = #templates > 1
local wrong = wrongtype('zset', sets)
if wrong then return wrong end

local fresh, ids, tasks, entry, done, version = count, {}, nil, nil, nil, nil
if A.marked ~= '' then
  --[[lib plans]]
  --[[lib planned]]
  --[[lib marked]]
  if #growth > 5 then
    local recording = growth
    --[[lib recorded]]
    wrong = unrecorded()
    if wrong then return wrong[1] == 'kept' and {'opened', wrong[3], wrong[2]} or wrong end
    done = function(memory) version = keep(memory) end
  end
  wrong = marks() or resolve()
  if wrong then return wrong end
  entry, done = mark, done or A.plan ~= '' and enrol
elseif A.plan ~= '' then
  wrong = wrongtype('hash', {K.plan(A.plan)}) or wrongtype('list', {K.planTasks(A.plan)})
  if wrong then return wrong end
  local job = redis.call('HMGET', K.plan(A.plan), 'state', 'job', 'total', 'left')
  if not job[1] then return {'plan', 'none'} end
  if job[1] ~= 'building' or job[2] ~= '1' then return {'plan', 'refuses', job[1]} end
  done = function()
    redis.call('RPUSH', K.planTasks(A.plan), unpack(ids))
    for i, n in ipairs({job[3], job[4]}) do job[i + 2] = string.format('%d', (tonumber(n or '') or 0) + fresh) end -- of a damaged one too
    redis.call('HSET', K.plan(A.plan), 'total', job[3], 'left', job[4])
  end
end

local last, keys = tonumber(redis.call('GET', K.taskID) or '0') or 0, {}
for i = 1, fresh do
  ids[i] = string.format('%d', last + i)
  keys[i] = K.task(ids[i])
end
if fresh > 0 and redis.call('EXISTS', unpack(keys)) > 0 then
  return redis.error_reply('ERR task_id is behind the tasks: set it to the highest id there is')
end

-- The watermark of known ids moves along while nobody else makes ids.
local adopted = meta_adopted or '0'
if not meta_adopted then redis.call('HSETNX', K.meta, 'protocol', A.protocol) end
if tonumber(adopted) == last then adopted = string.format('%d', last + fresh) end
if adopted ~= meta_adopted then along[1], along[2] = 'adopted', adopted end -- without a new task there is nothing to write
if fresh > 0 then
  redis.call('INCRBY', K.taskID, fresh)
  if aside then redis.call('HDEL', K.setAside, unpack(ids)) end -- an id from before a flush may be that of a dead letter
end
if #unknown > 0 then
  redis.call('SADD', K.buckets, unpack(unknown))
  redis.call('HINCRBY', K.meta, 'buckets', #unknown)
  redis.call('PUBLISH', K.rules, '1')
end

-- Where a task waits, its score is its start_after if one was given, also one in the past, else now: from then on it is in line.
local open, blocked, due, template, n, start, score, soon = {}, {}, {}, templates[1], 0, nil, nil, nil
for i = 1, count do
  local t = tasks and tasks[i]
  if t then
    template, at = t.template, t.place
  elseif several then
    template = templates[tonumber(arg())]
  end
  local own, record, held = template.own, template.record, template.held
  if not t or not t.old and not t.twin then
    n = n + 1
    local id = ids[n]
    for k = 1, #own do record[own[k]] = ARGV[at + k] end
    record[template.id] = id
    if t then
      t.id = id
      record, held = entry(t)
    end
    redis.call('HSET', keys[n], unpack(record))
    happened(id, '0', '', held and A.held or A.open, 'create', 'manager', '')
    if A.due ~= '' and record[template.deadline] ~= 'inf' then due[#due + 1], due[#due + 2] = moment(record[template.deadline]), id end
    if held then
      blocked[#blocked + 1], blocked[#blocked + 2] = stamp, id
    else
      if record[template.start] ~= start then
        start = record[template.start]
        score = tonumber(start) > 0 and moment(start) or stamp
        soon = tonumber(score) <= tonumber(stamp)
      end
      local bucket = template.bucket
      local m, scores = #open, bucket.scores
      open[m + 1], open[m + 2] = start, id
      m = #scores
      scores[m + 1], scores[m + 2] = score, string.char(96 + #id) .. id
      bucket.due = bucket.due or soon
    end
  end
  at = at + #own
end
if #open > 0 then redis.call('ZADD', K.open, unpack(open)) end
if #blocked > 0 then redis.call('ZADD', K.blocked, unpack(blocked)) end
if #due > 0 then redis.call('ZADD', K.due, unpack(due)) end
for i, b in ipairs(buckets) do
  if #b.scores > 0 then
    redis.call('ZADD', sets[i], unpack(b.scores))
    -- Waiters must learn of a start that is earlier than all they know: that of a new task.
    if b.wake and not b.due then b.due = (tonumber(string.sub(redis.call('ZRANGE', sets[i], 0, 0)[1], 2)) or 0) > last end
    if b.wake and b.due then redis.call('LPUSH', KEYS[#K + 2 * i], '1') end
  end
end

local memory = string.format('%d %d', last + 1, last + fresh)
if fresh < count then
  local texts = {'='}
  for i, t in ipairs(tasks) do
    local old = t.old or t.twin and t.twin.id
    texts[i + 1] = old and old .. '*' or t.id
  end
  memory = table.concat(texts, ' ')
end
if done then done(memory) end
if A.digest ~= '' then memory = memory .. ' ' .. A.digest end
if A.ttl ~= '0' then redis.call('SET', K.request, memory, 'EX', A.ttl) end
return {'opened', memory, version}
