-- record writes the record of a queue or of a node, and so makes new rules. One that is added gets the time in its field created, and the
-- call in created_by.
-- KEYS meta, full, blocked, executed, buckets; then the list of queues or nodes, the record, its wake list, the rounds and the tally
--   of the queue; then those of the queue: pairs: ready, wake
-- ARGV name, what ('add', 'set' or 'remove'), rules (version that the decision was made from), buckets (version of their list),
--   call (its id), spared (name that needs no record); then number of field values, fields and values,
--   number of fields to drop, fields, number of buckets of the queue, names
-- Returns 1 done, also if it has been done before, -1 the rules have changed, -2 it exists already, -3 it is in use,
-- also if too many tasks would have to be asked.
local stamp = now()
local list, record, wake, busy, tally = unpack(KEYS, #K + 1, #K + 5)
local wrong = wrongtype('hash', {K.meta, record, tally}) or wrongtype('set', {list, busy, K.buckets}) or wrongtype('list', {wake})
if wrong then return wrong end
local meta = redis.call('HMGET', K.meta, 'rules', 'buckets')
local exists = A.name == A.spared or redis.call('SISMEMBER', list, A.name) == 1
local calls = redis.call('HMGET', record, 'call', 'created_by')
if calls[1] == A.call or A.what == 'remove' and not exists then return 1 end
if A.what == 'add' and exists then return calls[2] == A.call and 1 or -2 end
if (meta[1] or '0') ~= A.rules or (meta[2] or '0') ~= A.buckets then return -1 end
local values, drop, names = args(), args(), args()

-- rests says whether a task in a set of states that no other index knows is one of the queue.
local function rests(set)
  for first = 0, redis.call('ZCARD', set) - 1, 1000 do
    for _, id in ipairs(redis.call('ZRANGE', set, first, first + 999)) do
      if redis.pcall('HGET', K.task(id), 'queue') == A.name then return true end
    end
  end
  return false
end

if A.what == 'remove' then
  wrong = wrongtype('zset', {K.blocked, K.executed}) or wrongtype('hash', {K.full})
  if wrong then return wrong end
  if redis.call('SCARD', busy) > 0 then return -3 end
  for k = #K + 6, #KEYS, 2 do
    if redis.call('ZCARD', KEYS[k]) > 0 then return -3 end
  end
  if redis.call('ZCARD', K.blocked) + redis.call('ZCARD', K.executed) > 200000 then return -3 end
  if rests(K.blocked) or rests(K.executed) then return -3 end
  redis.call('SREM', list, A.name)
  redis.call('DEL', record, wake, tally)
  redis.call('HDEL', K.full, 'q:' .. A.name)
  for k = #K + 7, #KEYS, 2 do redis.call('DEL', KEYS[k]) end
  if paged('SREM', K.buckets, names) > 0 then redis.call('HINCRBY', K.meta, 'buckets', 1) end
else
  local n = #values
  values[n + 1], values[n + 2] = 'call', A.call
  if A.what == 'add' then values[n + 3], values[n + 4], values[n + 5], values[n + 6] = 'created', stamp, 'created_by', A.call end
  redis.call('SADD', list, A.name)
  redis.call('HSET', record, unpack(values))
  if #drop > 0 then redis.call('HDEL', record, unpack(drop)) end
  token(wake)
end
counted(1)
redis.call('HINCRBY', K.meta, 'rules', 1)
redis.call('PUBLISH', K.rules, '1')
return 1
