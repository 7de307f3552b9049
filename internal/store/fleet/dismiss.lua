-- dismiss takes away the records of workers that are gone for long, and what else has their name. A name that comes again gets another
-- number, and incarnations above those that were taken away, so that no session of a former worker fits a new one.
-- KEYS meta, worker, full, lease
-- ARGV age (seconds since their end), lost, stopped (states of those that are gone), drain (order that stays); then their names
-- Returns how many. One that holds a task, has an order that stays, or a key of another type is kept, and so is a foreign worker, of which
-- nobody knows when it ended.
local wrong = wrongtype('hash', {K.meta, K.full}) or wrongtype('set', {K.worker}) or wrongtype('zset', {K.lease})
if wrong then return wrong end
local before = tonumber((now())) - tonumber(A.age)
local highest, gone = tonumber(redis.call('HGET', K.meta, 'incarnations') or '') or 0, {}
for i = #A + 1, #ARGV do
  local name = ARGV[i]
  local doc = redis.pcall('HMGET', K.workerDoc(name), 'state', 'ended', 'order', 'incarnation')
  if not doc.err and (doc[1] == A.lost or doc[1] == A.stopped) and (tonumber(doc[2]) or math.huge) < before and doc[3] ~= A.drain
    and not redis.call('ZSCORE', K.lease, name) and redis.call('EXISTS', K.held(name)) == 0
    and not (wrongtype('string', {K.workerID(name)}) or wrongtype('list', {K.halt(name)}) or wrongtype('set', {K.stop(name)})) then
    gone[#gone + 1], highest = name, math.max(highest, tonumber(doc[4]) or 0)
  end
end
if #gone == 0 then return 0 end
counted(1)
redis.call('HSET', K.meta, 'incarnations', string.format('%d', highest))
for _, name in ipairs(gone) do
  redis.call('DEL', K.workerDoc(name), K.workerID(name), K.halt(name), K.stop(name))
  redis.call('SREM', K.worker, name)
  redis.call('HDEL', K.full, 'w:' .. name)
end
return #gone
