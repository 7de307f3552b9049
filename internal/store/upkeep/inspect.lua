-- inspect reads tasks by id together with the sets that list them. It writes nothing.
-- KEYS meta, due; then one set a state
-- ARGV states (their number); then their names, then the ids
-- Returns {now, {{id, names of the sets that list it, score in due or '', a field that an open task lacks or '', light fields...}...}, by
-- how many microseconds now is ahead of TIME}.
local stamp, tasks, nstates = now(), {}, tonumber(A.states)

-- lacks names one of the fields without which a claim gives a task to nobody.
local function lacks(key)
  local needed = {'program', 'source', 'input', 'fails', 'timeouts'}
  for i, value in ipairs(redis.call('HMGET', key, unpack(needed))) do
    if not value then return needed[i] end
  end
  return ''
end

for i = #A + nstates + 1, #ARGV do
  local id, listed = ARGV[i], {}
  local key = K.task(id)
  for s = 1, nstates do
    if redis.call('ZSCORE', KEYS[#K + s], id) then listed[#listed + 1] = ARGV[#A + s] end
  end
  local fields = light(key)
  tasks[#tasks + 1] = {id, table.concat(listed, ' '), redis.call('ZSCORE', K.due, id) or '',
    fields[1] == 'open' and lacks(key) or '', unpack(fields)}
end
return {stamp, tasks, wall.ahead}
