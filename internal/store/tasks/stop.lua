-- stop marks tasks as to be stopped, each on its own, and calls who runs them.
-- Where a task is does not change. One that is marked already is called for again. One whose time is over is not
-- marked: its worker is only told.
--
-- KEYS meta; then the tasks
-- ARGV tasks (their number); then for each: id, state, round, revision, '1' if a worker is told, 'd' if only that,
--   number of lines, lines; number of field values, fields and values
-- Returns for each: 1 marked, 2 has been done before, -2 the task has changed, -3 the hash is missing or
-- damaged; and the time as the last element.
local stamp = now()

-- tell lets the worker of a round know.
local function tell(m, worker)
  if not m.told or not worker then return end
  redis.pcall('SADD', K.stop(worker), m.overdue and 'd' .. m.id or m.id)
  redis.call('PUBLISH', K.call(worker), '1')
end

local function mark(key, m)
  local t = redis.pcall('HMGET', key, 'state', 'round', 'rev', 'cancel_requested', 'log', m.round .. ':worker')
  if t.err or not t[1] or not t[2] then return -3 end
  local rev = tonumber(t[3]) or 0
  if t[1] ~= m.state or t[2] ~= m.round then return -2 end
  if m.overdue then
    tell(m, t[6])
    return 1
  end
  if t[4] and t[4] ~= '' then
    tell(m, t[6]) -- a client that knows no stops may have opened it again since: then its worker has not heard of it
    return 2
  end
  if rev ~= m.rev then return -2 end
  local v, log = m.fields, t[5]
  for _, line in ipairs(m.lines) do log = append(log, line) end
  for _, value in ipairs({'cancel_requested', stamp, 'rev', string.format('%d', following(rev)), 'log', log or ''}) do v[#v + 1] = value end
  redis.call('HSET', key, unpack(v))
  happened(m.id, m.round, m.state, m.state, 'cancel', 'manager', '')
  tell(m, t[6])
  return 1
end

local answer = {}
for i = 1, tonumber(A.tasks) do
  local m = {id = arg(), state = arg(), round = arg(), rev = tonumber(arg()), told = arg()}
  m.told, m.overdue = m.told ~= '', m.told == 'd'
  m.lines, m.fields = args(), args()
  answer[i] = mark(KEYS[#K + i], m)
end
answer[#answer + 1] = stamp
return answer
