-- params gives tasks that wait other parameters, each task on its own.
-- KEYS meta; then the tasks
-- ARGV params (a JSON object, or '' for none), dry ('1': change nothing), writer (as in logs), text (for the log, or ''); then the number of
--   states in which a task waits, and these
-- Returns for each task: 1 written, 2 it has them already, -3 the hash is missing or damaged, -7 it does not wait; and its state.
local waiting = {}
for _, state in ipairs(args()) do waiting[state] = true end

return each(function(key)
  local t = redis.pcall('HMGET', key, 'state', 'rev', 'params', 'log')
  if t.err or not t[1] then return -3, '' end
  if (t[3] or '') == A.params then return 2, t[1] end -- also if it has begun since, for a call that is sent again
  if not waiting[t[1]] then return -7, t[1] end
  put(key, t[2], t[4], 'params', A.params)
  return 1, t[1]
end)
