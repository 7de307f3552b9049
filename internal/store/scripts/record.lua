-- record writes the record of a queue or of a node, and so makes new rules. One that is added
-- gets the time in its field created, and the call in created_by.
--
-- KEYS[1] meta   KEYS[2] queues or nodes   KEYS[3] the record   KEYS[4] wake list of the queue or node
-- KEYS[5] rounds of the queue   KEYS[6] tally of the queue   KEYS[7] buckets   KEYS[8] full
-- KEYS[9], KEYS[10] sets of blocked and executed tasks   then those of the queue: pairs of bucket and its wake list
-- ARGV[1] name   ARGV[2] 'add', 'set' or 'remove'   ARGV[3] version of the rules the decision was made from
-- ARGV[4] version of the list of buckets   ARGV[5] id of the call   ARGV[6] channel of rules
-- ARGV[7] name that needs no record   ARGV[8] task key prefix   ARGV[9] number of field values, fields and values,
-- number of fields to drop, fields, number of buckets of the queue, names
-- Returns 1 done, also if it has been done before, -1 the rules have changed, -2 it exists already, -3 it is in use,
-- also if too many tasks would have to be asked.
local stamp = now()
local wrong = wrongtype('hash', {1, 3, 6}) or wrongtype('set', {2, 5, 7}) or wrongtype('list', {4})
if wrong then return wrong end
local meta = redis.call('HMGET', KEYS[1], 'rules', 'buckets')
local exists = ARGV[1] == ARGV[7] or redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1
local calls = redis.call('HMGET', KEYS[3], 'call', 'created_by')
if calls[1] == ARGV[5] then return 1 end
if ARGV[2] == 'remove' and not exists then return 1 end
if ARGV[2] == 'add' and exists then return calls[2] == ARGV[5] and 1 or -2 end
if (meta[1] or '0') ~= ARGV[3] or (meta[2] or '0') ~= ARGV[4] then return -1 end

local at = 8
local function args()
  local list = {}
  at = at + 1
  for i = 1, tonumber(ARGV[at]) do list[i] = ARGV[at + i] end
  at = at + #list
  return list
end

local values, drop, names = args(), args(), args()

-- chunks calls a command for a list, 1000 texts a call, since unpack has a limit, and returns the sum of the answers.
local function chunks(command, key, list)
  local sum = 0
  for i = 1, #list, 1000 do
    sum = sum + redis.call(command, key, unpack(list, i, math.min(i + 999, #list)))
  end
  return sum
end

-- rests says whether a task in a set of states that no other index knows is one of the queue.
local function rests(set)
  for first = 0, redis.call('ZCARD', set) - 1, 1000 do
    for _, id in ipairs(redis.call('ZRANGE', set, first, first + 999)) do
      if redis.pcall('HGET', ARGV[8] .. id, 'queue') == ARGV[1] then return true end
    end
  end
  return false
end

local function remove()
  wrong = wrongtype('zset', {9, 10}) or wrongtype('hash', {8})
  if wrong then return wrong end
  if redis.call('SCARD', KEYS[5]) > 0 then return -3 end
  for k = 11, #KEYS, 2 do
    if redis.call('ZCARD', KEYS[k]) > 0 then return -3 end
  end
  if redis.call('ZCARD', KEYS[9]) + redis.call('ZCARD', KEYS[10]) > 200000 then return -3 end
  if rests(KEYS[9]) or rests(KEYS[10]) then return -3 end
  redis.call('SREM', KEYS[2], ARGV[1])
  redis.call('DEL', KEYS[3], KEYS[4], KEYS[6])
  redis.call('HDEL', KEYS[8], 'q:' .. ARGV[1])
  for k = 12, #KEYS, 2 do redis.call('DEL', KEYS[k]) end
  if chunks('SREM', KEYS[7], names) > 0 then redis.call('HINCRBY', KEYS[1], 'buckets', 1) end
  return 1
end

local code = 1
if ARGV[2] == 'remove' then
  code = remove()
else
  local function set(field, value)
    values[#values + 1] = field
    values[#values + 1] = value
  end
  set('call', ARGV[5])
  if ARGV[2] == 'add' then
    set('created', stamp)
    set('created_by', ARGV[5])
  end
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('HSET', KEYS[3], unpack(values))
  if #drop > 0 then redis.call('HDEL', KEYS[3], unpack(drop)) end
  token(KEYS[4])
end
if code == 1 then
  counted(1)
  redis.call('HINCRBY', KEYS[1], 'rules', 1)
  redis.call('PUBLISH', ARGV[6], '1')
end
return code
