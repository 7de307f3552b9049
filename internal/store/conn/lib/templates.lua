-- What the tasks that open makes have in common. buckets are those they come into, with the scores and members that do; unknown are the
-- names of those not on the list yet; sets are all that is written to.
local buckets, unknown, sets = {}, {}, {}
for i, name in ipairs(names) do
  sets[i] = KEYS[#K + 2 * i - 1]
  buckets[i] = {scores = {}, wake = redis.call('LLEN', KEYS[#K + 2 * i]) == 0}
  if redis.call('SISMEMBER', K.buckets, name) == 0 then unknown[#unknown + 1] = name end
end

-- A template is the record of its tasks, in which each puts the values that are its own.
local templates = {}
for i = 1, tonumber(arg()) do
  local t = {bucket = buckets[tonumber(arg())], held = arg() == '1', start = tonumber(arg()), deadline = tonumber(arg()),
    record = args(), own = args()}
  local record, n, state = t.record, #t.record, t.held and A.held or A.open
  record[n + 1], record[n + 2], record[n + 3], record[n + 4], record[n + 5], record[n + 6] = 'round', '0', 'fails', '0', 'timeouts', '0'
  record[n + 7], record[n + 8], record[n + 9], record[n + 10] = 'log', '', 'namespace', string.sub(namespace, 1, -2)
  record[n + 11], record[n + 13], record[n + 14], record[n + 15], record[n + 16] = 'id', 'state', state, '0:' .. state, stamp
  t.id = n + 12
  local job = A.plan ~= '' and A.marked == ''
  if job then record[n + 17], record[n + 18] = 'plan', 'j' .. A.plan end
  for k, place in ipairs(t.own) do t.own[k] = tonumber(place) end
  if t.held or A.plan ~= '' and not job then sets[#sets + 1] = K.blocked end
  if not t.held then sets[#sets + 1] = K.open end
  templates[i] = t
end
if A.due ~= '' then sets[#sets + 1] = K.due end
