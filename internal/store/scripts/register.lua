-- register makes a worker known under its name and begins its lease. Who has the name keeps it, however long
-- it has been silent by the clock of Redis: that runs on while Redis is away, and may jump. What frees a name is
-- a server's verdict (state lost), a clean leave, or a caller who knows the holder's incarnation to be dead.
--
-- KEYS[1] meta   KEYS[2] worker   KEYS[3] worker_id   KEYS[4] worker_id:<name>   KEYS[5] worker:<name>
-- KEYS[6] lease   KEYS[7] held:<name>   KEYS[8] halt:<name>   KEYS[9] buckets   KEYS[10] set_aside
-- KEYS[11] nodes   KEYS[12] stop:<name>
-- ARGV[1] name   ARGV[2] incarnation known to be dead, or 0   ARGV[3] identity   ARGV[4] default lease
-- ARGV[5] task key prefix   ARGV[6] state whose tasks are held   ARGV[7] most tasks to return
-- ARGV[8] state of a new worker   ARGV[9] of a lost one   ARGV[10] of one that has left   ARGV[11] order that stays
-- ARGV[12] name of the default bucket   ARGV[13] process id   ARGV[14] node
-- ARGV[15] number of field values, fields and values
-- Returns {'registered', now, id, incarnation, lease, order}; {'taken', now, heartbeat, allowance, fields and
-- values of the holder} and nothing changes; or {'former', now, {task...}}: an earlier session holds tasks
-- still. Then it can neither renew nor claim any more, and nothing else changes. Sent again by the same
-- identity: the same answer. Where the entry in lease is gone, deleted by hand, nobody has the name.
local stamp, seconds = now()
local lease = published(ARGV[4])
local doc = redis.call('HMGET', KEYS[5], 'incarnation', 'state', 'identity', 'order', 'lease', 'epoch')
local beat = redis.call('ZSCORE', KEYS[6], ARGV[1])
local incarnation = tonumber(doc[1]) or 0
local holds = beat and doc[2] and doc[2] ~= ARGV[9] and doc[2] ~= ARGV[10]
local id = redis.call('GET', KEYS[4])
local order = doc[4] == ARGV[11] and doc[4] or ''

local former_epoch = (tonumber(doc[6] or '') or 1) ~= epoch -- its session is over, and it may register anew
if holds and incarnation ~= tonumber(ARGV[2]) and not (former_epoch and doc[3] == ARGV[3]) then
  if doc[3] == ARGV[3] then
    return {'registered', stamp, id, string.format('%d', incarnation), doc[5], doc[4] or ''}
  end
  return {'taken', stamp, beat, string.format('%.14g', allowance(lease, doc[5])), redis.call('HGETALL', KEYS[5])}
end

local former, stale = rounds(KEYS[7], {name = ARGV[1], tasks = ARGV[5], running = ARGV[6], aside = KEYS[10]},
  tonumber(ARGV[7]))
local wrong = wrongtype('hash', {1}) or wrongtype('set', {2, 9, 11, 12}) or wrongtype('string', {3}) or wrongtype('list', {8})
if wrong then return wrong end
forget(KEYS[7], stale)
if #former > 0 then
  redis.call('HSET', KEYS[5], 'state', ARGV[9])
  redis.call('ZADD', KEYS[6], 'NX', stamp, ARGV[1])
  return {'former', stamp, former}
end

if not id then
  id = string.format('%d', redis.call('INCR', KEYS[3]))
  redis.call('SET', KEYS[4], id)
end
-- In each epoch they begin at another million, so that a claim of a former session never fits a new one.
incarnation = string.format('%d', math.max(incarnation, (epoch - 1) * 1000000) + 1)
local v = {'id', id, 'name', ARGV[1], 'incarnation', incarnation, 'identity', ARGV[3], 'pid', ARGV[13],
  'state', ARGV[8], 'epoch', string.format('%d', epoch), 'started', stamp, 'lease', string.format('%.14g', lease),
  'heartbeat', heartbeat(seconds, ARGV[13], '[]')}
if order ~= '' then
  v[#v + 1] = 'order'
  v[#v + 1] = order
end
for i = 16, 15 + tonumber(ARGV[15]) do v[#v + 1] = ARGV[i] end
counted(1)
redis.call('DEL', KEYS[5], KEYS[8], KEYS[12])
redis.call('HSET', KEYS[5], unpack(v))
redis.call('ZADD', KEYS[6], stamp, ARGV[1])
redis.call('SADD', KEYS[2], ARGV[1])
if ARGV[14] ~= '' then redis.call('SADD', KEYS[11], ARGV[14]) end
if redis.call('SADD', KEYS[9], ARGV[12]) == 1 then redis.call('HINCRBY', KEYS[1], 'buckets', 1) end
return {'registered', stamp, id, incarnation, string.format('%.14g', lease), order}
