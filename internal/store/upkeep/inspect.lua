-- inspect reads tasks by id together with the sets that list them. It writes
-- nothing.
--
-- KEYS meta, due; then one set a state
-- ARGV states (their number); then their names, then the ids
-- Returns {now, {{id, names of the sets that list it, score in due or '', a field that an open task lacks or '',
-- light fields...}...}, by how many microseconds now is ahead of TIME}.
local needed = {'program', 'source', 'input', 'fails', 'timeouts'} -- without which a claim gives a task to nobody
local function lacks(key)
  for i, value in ipairs(redis.call('HMGET', key, unpack(needed))) do
    if not value then return needed[i] end
  end
  return ''
end
local tasks = {}
local nstates = tonumber(A.states)
for i = #A + nstates + 1, #ARGV do
  local id = ARGV[i]
  local listed = {}
  for s = 1, nstates do
    if redis.call('ZSCORE', KEYS[#K + s], id) then listed[#listed + 1] = ARGV[#A + s] end
  end
  local key = K.task(id)
  local fields = light(key)
  tasks[#tasks + 1] = {id, table.concat(listed, ' '), redis.call('ZSCORE', K.due, id) or '',
    fields[1] == 'open' and lacks(key) or '', unpack(fields)}
end
local stamp = now()
return {stamp, tasks, wall.ahead}
