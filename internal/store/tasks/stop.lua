-- stop marks tasks as to be stopped, each on its own, and calls who runs them. Where a task is does not change. One that is marked already
-- is called for again. One whose time is over is not marked: its worker is only told.
-- KEYS meta; then the tasks
-- ARGV tasks (their number); then for each: id, state, round, revision, '1' if a worker is told, 'd' if only that, number of lines, lines;
--   number of field values, fields and values
-- Returns for each: 1 marked, 2 has been done before, -2 the task has changed, -3 the hash is missing or damaged; and then the time.
local stamp = now()

-- mark returns also whether the worker is to know. Where a client that knows no stops has opened the task again, it is called again.
local function mark(key, m, t)
  if t.err or not t[1] or not t[2] then return -3 end
  local rev = tonumber(t[3]) or 0
  if t[1] ~= m.state or t[2] ~= m.round then return -2 end
  if m.told == 'd' then return 1, true end
  if t[4] and t[4] ~= '' then return 2, true end
  if rev ~= m.rev then return -2 end
  local v, log = m.fields, t[5]
  for _, line in ipairs(m.lines) do log = append(log, line) end
  local n = #v
  v[n + 1], v[n + 2], v[n + 3], v[n + 4] = 'cancel_requested', stamp, 'rev', string.format('%d', following(rev))
  v[n + 5], v[n + 6] = 'log', log or ''
  redis.call('HSET', key, unpack(v))
  happened(m.id, m.round, m.state, m.state, 'cancel', 'manager', '')
  return 1, true
end

local answer = {}
for i = 1, tonumber(A.tasks) do
  local m = {id = arg(), state = arg(), round = arg(), rev = tonumber(arg()), told = arg(), lines = args(), fields = args()}
  local t = redis.pcall('HMGET', KEYS[#K + i], 'state', 'round', 'rev', 'cancel_requested', 'log', m.round .. ':worker')
  local tells
  answer[i], tells = mark(KEYS[#K + i], m, t)
  if tells and m.told ~= '' and t[6] then
    redis.pcall('SADD', K.stop(t[6]), m.told == 'd' and 'd' .. m.id or m.id)
    redis.call('PUBLISH', K.call(t[6]), '1')
  end
end
answer[#answer + 1] = stamp
return answer
