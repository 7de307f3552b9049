-- inspect reads tasks by id together with the sets that list them. It writes
-- nothing.
--
-- KEYS[1] meta   KEYS[2] due   KEYS[3..] one set a state
-- ARGV[1] task key prefix   ARGV[2] number of states, followed by their names   then the ids
-- Returns {now, {{id, names of the sets that list it, score in due or '', light fields...}...}}.
local tasks = {}
local nstates = tonumber(ARGV[2])
for i = 3 + nstates, #ARGV do
  local id = ARGV[i]
  local listed = {}
  for s = 1, nstates do
    if redis.call('ZSCORE', KEYS[2 + s], id) then listed[#listed + 1] = ARGV[2 + s] end
  end
  tasks[#tasks + 1] = {id, table.concat(listed, ' '), redis.call('ZSCORE', KEYS[2], id) or '',
    unpack(light(ARGV[1] .. id))}
end
local stamp = now()
return {stamp, tasks}
