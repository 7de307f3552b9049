-- repair makes the state sets agree with what was decided about a task whose sets and hash disagree, or sets a damaged task aside.
-- KEYS meta, task, due, setAside; then one set a state, then, for a dead letter, all buckets: which it was in cannot
--   be told from a damaged record
-- ARGV id, state, round, rev, listed (names of the sets that list it: what was seen), to (state it shall be listed in, or ''),
--   score (there), aside (description, or ''), idle ('1' if the task does not run), states (their number); then their names,
--   then the number of field values, fields and values to write
-- Returns 1 done, also if it has been done before, 0 a dead letter already, -2 the task or its sets have changed.
local t = redis.pcall('HMGET', K.task, 'state', 'round', 'rev')
if t.err then t = {} end
local states, listed = {}, {}
for s = 1, tonumber(A.states) do
  states[s] = arg()
  if redis.call('ZSCORE', KEYS[#K + s], A.id) then listed[#listed + 1] = states[s] end
end
listed = table.concat(listed, ' ')
local wrong = wrongtype('zset', {K.due}) or wrongtype('hash', {K.setAside})
if wrong then return wrong end
local values = args()
local rev = #values > 0 and following(A.rev) or tonumber(A.rev) or 0

local function done()
  if listed ~= A.to or (tonumber(t[3]) or 0) ~= rev then return false end
  if A.aside ~= '' then return redis.call('HGET', K.setAside, A.id) == A.aside end
  return (#values > 0 or A.listed ~= A.to) and t[1] == A.to and t[2] == A.round
end

if done() then return 1 end
if (t[1] or '') ~= A.state or (t[2] or '') ~= A.round or (t[3] or '') ~= A.rev or listed ~= A.listed then return -2 end
if A.aside ~= '' and listed == '' and redis.call('HEXISTS', K.setAside, A.id) == 1 then return 0 end
happened(A.id, A.round, A.state, A.to, 'repair', 'server', '')
for s, state in ipairs(states) do
  if state ~= A.to then
    redis.call('ZREM', KEYS[#K + s], A.id)
  elseif not redis.call('ZSCORE', KEYS[#K + s], A.id) then
    redis.call('ZADD', KEYS[#K + s], A.score, A.id)
  end
end
if A.aside ~= '' then
  redis.call('HSET', K.setAside, A.id, A.aside)
  redis.call('ZREM', K.due, A.id)
  local member = string.char(96 + #A.id) .. A.id
  for k = #K + #states + 1, #KEYS do redis.pcall('ZREM', KEYS[k], member) end
else
  redis.call('HDEL', K.setAside, A.id)
end
if A.idle == '1' then unhold(K.task, A.round, A.id) end
if #values > 0 then redis.call('HSET', K.task, 'rev', string.format('%d', rev), unpack(values)) end
return 1
