-- renew.lua: a heartbeat extends the lease of running tasks.
-- KEYS: 1 prefix of task hashes, 2..4 deadline indices
-- ARGV: 1 lease in seconds, then 3 values a task: id round claim
-- Returns: for each task 1 renewed or 0 refused.
local now, out = clock(), {}
for i = 2, #ARGV, 3 do
  local id, r = ARGV[i], ARGV[i + 1]
  local key = KEYS[1] .. id
  local t = redis.call('HMGET', key, 'state', 'round', r .. ':claim')
  if t[1] == 'running' and t[2] == r and t[3] == ARGV[i + 2] then
    due_renew(2, id, now, key, r, tonumber(ARGV[1]))
    out[#out + 1] = 1
  else
    out[#out + 1] = 0
  end
end
return out
