-- repair makes the state sets agree with what was decided about a task whose
-- sets and hash disagree, or sets a damaged task aside.
--
-- KEYS meta, task, due, setAside; then one set a state, then, for a dead letter, all buckets: which it was in cannot
--   be told from a damaged record
-- ARGV id, state, round, rev, listed (names of the sets that list it: what was seen), to (state it shall be listed in, or ''),
--   score (there), aside (description, or ''), idle ('1' if the task does not run), states (their number); then their names,
--   then the number of field values, fields and values to write
-- Returns 1 done, also if it has been done before, 0 a dead letter already, -2 the task or its sets have changed.
local t = redis.pcall('HMGET', K.task, 'state', 'round', 'rev')
if t.err then t = {} end
local listed = {}
local nstates = tonumber(A.states)
for s = 1, nstates do
  if redis.call('ZSCORE', KEYS[#K + s], A.id) then listed[#listed + 1] = ARGV[#A + s] end
end
local wrong = wrongtype('zset', {K.due}) or wrongtype('hash', {K.setAside})
if wrong then return wrong end

local first = #A + nstates + 1 -- of ARGV behind the states
local writes = tonumber(ARGV[first]) > 0
local rev = writes and following(A.rev) or tonumber(A.rev) or 0

-- done recognises a call whose reply was lost.
local function done()
  if table.concat(listed, ' ') ~= A.to or (tonumber(t[3]) or 0) ~= rev then return false end
  if A.aside ~= '' then return redis.call('HGET', K.setAside, A.id) == A.aside end
  return (writes or A.listed ~= A.to) and t[1] == A.to and t[2] == A.round
end

if done() then return 1 end
if (t[1] or '') ~= A.state or (t[2] or '') ~= A.round or (t[3] or '') ~= A.rev
  or table.concat(listed, ' ') ~= A.listed then return -2 end
if A.aside ~= '' and #listed == 0 and redis.call('HEXISTS', K.setAside, A.id) == 1 then return 0 end
happened(A.id, A.round, A.state, A.to, 'repair', 'server', '')
for s = 1, nstates do
  if ARGV[#A + s] ~= A.to then
    redis.call('ZREM', KEYS[#K + s], A.id)
  elseif not redis.call('ZSCORE', KEYS[#K + s], A.id) then
    redis.call('ZADD', KEYS[#K + s], A.score, A.id)
  end
end
if A.aside ~= '' then
  redis.call('HSET', K.setAside, A.id, A.aside)
  redis.call('ZREM', K.due, A.id)
  local member = string.char(96 + #A.id) .. A.id
  for k = #K + nstates + 1, #KEYS do redis.pcall('ZREM', KEYS[k], member) end
else
  redis.call('HDEL', K.setAside, A.id)
end
if A.idle == '1' then unhold(K.task, A.round, A.id) end
local values = {}
for i = 1, tonumber(ARGV[first]) do values[i] = ARGV[first + i] end
if #values > 0 then
  values[#values + 1] = 'rev'
  values[#values + 1] = string.format('%d', rev)
  redis.call('HSET', K.task, unpack(values))
end
return 1
