-- repair makes the state sets agree with what was decided about a task whose
-- sets and hash disagree, or sets a damaged task aside.
--
-- KEYS[1] meta   KEYS[2] task   KEYS[3] due   KEYS[4] set_aside   KEYS[5..] one set a state
-- then, for one that is set aside, all buckets: which it was in cannot be told from a damaged record
-- ARGV[1] id   ARGV[2] state   ARGV[3] round   ARGV[4] revision   ARGV[5] names of the sets that list it:
-- what was seen   ARGV[6] state it shall be listed in, or ''   ARGV[7] score there
-- ARGV[8] description for set_aside, or ''   ARGV[9] '1' if the task does not run
-- ARGV[10] number of states, followed by their names   then what counts a round (lib/slots.lua), 10 texts
-- then the number of field values, fields and values to write
-- Returns 1 done, also if it has been done before, 0 set aside already, -2 the task or its sets have changed.
local t = redis.pcall('HMGET', KEYS[2], 'state', 'round', 'rev')
if t.err then t = {} end
local listed = {}
local nstates = tonumber(ARGV[10])
for s = 1, nstates do
  if redis.call('ZSCORE', KEYS[4 + s], ARGV[1]) then listed[#listed + 1] = ARGV[10 + s] end
end
local wrong = wrongtype('zset', {3}) or wrongtype('hash', {4})
if wrong then return wrong end

local first = 22 + nstates
local writes = tonumber(ARGV[first - 1]) > 0
local rev = writes and following(ARGV[4]) or tonumber(ARGV[4]) or 0

-- done recognises a call whose reply was lost.
local function done()
  if table.concat(listed, ' ') ~= ARGV[6] or (tonumber(t[3]) or 0) ~= rev then return false end
  if ARGV[8] ~= '' then return redis.call('HGET', KEYS[4], ARGV[1]) == ARGV[8] end
  return (writes or ARGV[5] ~= ARGV[6]) and t[1] == ARGV[6] and t[2] == ARGV[3]
end

if done() then return 1 end
if (t[1] or '') ~= ARGV[2] or (t[2] or '') ~= ARGV[3] or (t[3] or '') ~= ARGV[4]
  or table.concat(listed, ' ') ~= ARGV[5] then return -2 end
if ARGV[8] ~= '' and #listed == 0 and redis.call('HEXISTS', KEYS[4], ARGV[1]) == 1 then return 0 end
happened(ARGV[1], ARGV[3], ARGV[2], ARGV[6], 'repair', 'server', '')
for s = 1, nstates do
  if ARGV[10 + s] ~= ARGV[6] then
    redis.call('ZREM', KEYS[4 + s], ARGV[1])
  elseif not redis.call('ZSCORE', KEYS[4 + s], ARGV[1]) then
    redis.call('ZADD', KEYS[4 + s], ARGV[7], ARGV[1])
  end
end
if ARGV[8] ~= '' then
  redis.call('HSET', KEYS[4], ARGV[1], ARGV[8])
  redis.call('ZREM', KEYS[3], ARGV[1])
  local member = string.char(96 + #ARGV[1]) .. ARGV[1]
  for k = 5 + nstates, #KEYS do redis.pcall('ZREM', KEYS[k], member) end
else
  redis.call('HDEL', KEYS[4], ARGV[1])
end
if ARGV[9] == '1' then unhold({unpack(ARGV, 11 + nstates, 20 + nstates)}, KEYS[2], ARGV[3], ARGV[1]) end
local values = {}
for i = 1, tonumber(ARGV[first - 1]) do values[i] = ARGV[first - 1 + i] end
if #values > 0 then
  values[#values + 1] = 'rev'
  values[#values + 1] = string.format('%d', rev)
  redis.call('HSET', KEYS[2], unpack(values))
end
return 1
