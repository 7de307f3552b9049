-- open creates tasks, all or none.
--
-- KEYS[1] meta   KEYS[2] task_id   KEYS[3] request   KEYS[4] set of the initial state
-- KEYS[5] due    KEYS[6] buckets   KEYS[7..] pairs: bucket, wake list of the bucket
-- ARGV[1] task key prefix   ARGV[2] request TTL in seconds   ARGV[3] number of tasks
-- ARGV[4] initial state     ARGV[5] protocol version
-- ARGV[6] number of buckets, followed by their names
-- then for each task: index of its bucket (0: none), start_after, end_before
-- (or ''), number of field values, fields and values
-- Returns {first id, last id}. Sent again with the same request: the same ids,
-- and nothing changes. An error, and nothing changes, if a task of a new id is
-- there already or if a key has another type.
local before = redis.call('GET', KEYS[3])
if before then
  local first, last = string.match(before, '^(%d+) (%d+)$')
  return {tonumber(first), tonumber(last)}
end

local zsets, lists = {4, 5}, {}
for k = 7, #KEYS, 2 do
  zsets[#zsets + 1] = k
  lists[#lists + 1] = k + 1
end
local wrong = wrongtype('hash', {1}) or wrongtype('set', {6}) or wrongtype('zset', zsets) or wrongtype('list', lists)
if wrong then return wrong end

local stamp = now()
local n = tonumber(ARGV[3])
local first = (tonumber(redis.call('GET', KEYS[2]) or '0') or 0) + 1
local tasks = {}
for i = 1, n do tasks[i] = ARGV[1] .. string.format('%d', first - 1 + i) end
if redis.call('EXISTS', unpack(tasks)) > 0 then
  return redis.error_reply('ERR task_id is behind the tasks: set it to the highest id there is')
end
local last = redis.call('INCRBY', KEYS[2], n)

-- The watermark of known ids moves along while nobody else makes ids.
local adopted = redis.call('HGET', KEYS[1], 'adopted')
if not adopted then
  redis.call('HSETNX', KEYS[1], 'protocol', ARGV[5])
  adopted = '0'
  redis.call('HSET', KEYS[1], 'adopted', '0')
end
if tonumber(adopted) == first - 1 then
  redis.call('HSET', KEYS[1], 'adopted', last)
end

local at = 6
local function arg()
  at = at + 1
  return ARGV[at]
end
for _ = 1, tonumber(ARGV[6]) do redis.call('SADD', KEYS[6], arg()) end

local ready = {}
for id = first, last do
  local text = string.format('%d', id)
  local bucket, start, deadline = tonumber(arg()), arg(), arg()
  local values = {'id', text, '0:' .. ARGV[4], stamp}
  for _ = 1, tonumber(arg()) do values[#values + 1] = arg() end
  redis.call('HSET', ARGV[1] .. text, unpack(values))
  redis.call('ZADD', KEYS[4], start, text)
  if deadline ~= '' then redis.call('ZADD', KEYS[5], deadline, text) end
  if bucket > 0 then
    redis.call('ZADD', KEYS[5 + 2 * bucket], start, string.char(96 + #text) .. text)
    if tonumber(start) <= tonumber(stamp) then ready[bucket] = true end
  end
end
for bucket in pairs(ready) do
  local wake = KEYS[6 + 2 * bucket]
  if redis.call('LLEN', wake) == 0 then redis.call('LPUSH', wake, '1') end
end
redis.call('SET', KEYS[3], string.format('%d %d', first, last), 'EX', ARGV[2])
return {first, last}
