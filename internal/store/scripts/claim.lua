-- claim moves due tasks from the buckets to one worker, in the order of the
-- buckets, within a bucket by score, then by id.
--
-- KEYS[1] meta   KEYS[2] set claimed from   KEYS[3] set claimed to   KEYS[4] due
-- KEYS[5] the worker's last claim   KEYS[6] worker:<name>   KEYS[7] lease   KEYS[8] held:<name>
-- KEYS[9] buckets   KEYS[10..] pairs: bucket, wake list of the bucket
-- ARGV[1] task key prefix   ARGV[2] worker   ARGV[3] request id   ARGV[4] most tasks to claim
-- ARGV[5] state claimed from   ARGV[6] state claimed to   ARGV[7] default grace in seconds
-- ARGV[8] worker name as in logs   ARGV[9] incarnation of the worker's session, '' for none
-- ARGV[10], ARGV[11] states in which a session is over   ARGV[12] node   ARGV[13] how many buckets the worker knows
-- Returns -1, and nothing changes, if the session is over; else
-- {now, more ('1' or ''), next start or '', {damaged id...}, {task...}, {name of a bucket...}}, the last empty
-- if the worker knows them all;
-- a task is {id, claim id, claimed at, fields in the order of claimFields in claim.go}. Sent again with
-- the same request: the same tasks, as far as they are still held, and nothing
-- changes but the heartbeat. An error, and nothing changes, if a key has another type.
local session = ARGV[9] ~= ''
local beat
if session then
  local doc = redis.call('HMGET', KEYS[6], 'incarnation', 'state')
  if doc[1] ~= ARGV[9] or doc[2] == ARGV[10] or doc[2] == ARGV[11] then return -1 end
  beat = redis.call('ZSCORE', KEYS[7], ARGV[2])
end
local first = 10 -- of the pairs
local known = redis.call('SCARD', KEYS[9]) == tonumber(ARGV[13])
local stamp, seconds = now()
local clock = tonumber(stamp)
local most = tonumber(ARGV[4])
local budget = most + 100
local got, damaged, more = {}, {}, ''
-- Read before the first write, since Redis does not undo. The comparison also leaves out nan.
local grace = tonumber(redis.call('HGET', KEYS[1], 'timeout_grace') or '')
if not (grace and grace >= 0) then grace = tonumber(ARGV[7]) end

-- number returns the text of a number that is not negative, 'inf' for every
-- spelling of infinity, or nil.
local function number(text)
  local lower = string.gsub(string.lower(text), '^%+', '')
  if lower == 'inf' or lower == 'infinity' then return 'inf' end
  local n = string.match(text, '^[%d.eE+-]+$') and tonumber(text)
  return n and n >= 0 and n < math.huge and text or nil
end

-- read returns what a worker needs to know of a task, or nil if the hash does
-- not hold what it must.
local function read(id)
  local t = redis.pcall('HMGET', ARGV[1] .. id, 'state', 'round', 'rev', 'start_after', 'end_before',
    'timeout', 'fails', 'timeouts', 'max_fails', 'max_timeouts', 'program', 'source', 'input',
    'argv', 'fail_on', 'losses', 'releases', 'max_losses', 'queue', 'env', 'labels', 'priority', 'log')
  if t.err then return nil end
  for i = 1, 13 do
    if not t[i] and i ~= 3 then return nil end
  end
  for i = 4, 10 do
    t[i] = number(t[i])
    if not t[i] then return nil end
  end
  if not string.match(t[2], '^%d+$') then return nil end
  for i = 1, 23 do t[i] = t[i] or '' end
  return t
end

local function answer(id, claim, at, t)
  got[#got + 1] = {id, claim, at, unpack(t, 1, 22)}
end

local before = redis.call('GET', KEYS[5])
local again = before and string.match(before, '^%S+') == ARGV[3]
if again then
  local n = 0
  for id in string.gmatch(before, ' (%d+)') do
    n = n + 1
    local claim = ARGV[3] .. '.' .. n
    local t = read(id)
    if t and t[1] == ARGV[6] then
      local r = redis.call('HMGET', ARGV[1] .. id, t[2] .. ':claim', t[2] .. ':running')
      if r[1] == claim then answer(id, claim, r[2], t) end
    end
  end
end

-- deadline is the next moment a server must look at the task once it runs.
local function deadline(t)
  if t[5] == 'inf' and t[6] == 'inf' then return nil end
  local limit = t[6] ~= 'inf' and clock + tonumber(t[6]) + grace or math.huge
  local last = t[5] ~= 'inf' and tonumber(t[5]) or math.huge
  return string.format('%.6f', math.min(limit, last))
end

local function hold(id, t)
  local claim = ARGV[3] .. '.' .. (#got + 1)
  local round = t[2] .. ':'
  t[3] = string.format('%d', (tonumber(t[3]) or 0) + 1)
  local line = datetime(seconds) .. ' - ' .. ARGV[8] .. ' moving task ' .. id .. ': ' .. ARGV[5] .. ' -> ' .. ARGV[6]
  redis.call('HSET', ARGV[1] .. id, 'state', ARGV[6], 'rev', t[3],
    round .. 'worker', ARGV[2], round .. 'claim', claim, round .. ARGV[6], stamp, 'log', append(t[23], line))
  if session then
    redis.call('HSET', ARGV[1] .. id, round .. 'incarnation', ARGV[9], round .. 'node', ARGV[12])
    redis.call('SADD', KEYS[8], id)
  end
  redis.call('ZADD', KEYS[3], stamp, id)
  local due = deadline(t)
  if due then redis.call('ZADD', KEYS[4], due, id) else redis.call('ZREM', KEYS[4], id) end
  answer(id, claim, stamp, t)
end

-- try claims one task; what cannot be claimed has left the bucket, because it
-- is claimed by a foreign client, expired, or damaged.
local function try(id)
  local t = read(id)
  if not t then
    damaged[#damaged + 1] = id
    return
  end
  local last = t[5] == 'inf' and math.huge or tonumber(t[5])
  if t[1] ~= ARGV[5] or clock > last then return end
  if redis.call('ZREM', KEYS[2], id) == 1 then hold(id, t) end
end

-- unfit is an error reply if a key that is written has another type.
local function unfit()
  local zsets, lists = {2, 3, 4}, {}
  for k = first, #KEYS, 2 do
    zsets[#zsets + 1] = k
    lists[#lists + 1] = k + 1
  end
  return wrongtype('hash', {1}) or wrongtype('set', {8}) or wrongtype('zset', zsets) or wrongtype('list', lists)
end

local checked = false
for k = first, again and 0 or #KEYS, 2 do
  while #got < most and budget > 0 do
    local members = redis.call('ZRANGEBYSCORE', KEYS[k], '-inf', stamp, 'LIMIT', 0, most - #got)
    if #members == 0 then break end
    local wrong = not checked and unfit()
    if wrong then return wrong end
    checked = true
    redis.call('ZREM', KEYS[k], unpack(members))
    for _, m in ipairs(members) do try(string.sub(m, 2)) end
    budget = budget - #members
  end
end

-- Pass the wake-up on if more is due; say when the next task starts.
local next = math.huge
for k = first, #KEYS, 2 do
  local head = redis.call('ZRANGE', KEYS[k], 0, 0, 'WITHSCORES')
  local score = tonumber(head[2])
  if score and score <= clock then
    more = '1'
    if #got > 0 and not again and redis.call('LLEN', KEYS[k + 1]) == 0 then redis.call('LPUSH', KEYS[k + 1], '1') end
  elseif score and score < next then
    next = score
  end
end
if #got > 0 and not again then
  local ids = {ARGV[3]}
  for i, t in ipairs(got) do ids[i + 1] = t[1] end
  redis.call('SET', KEYS[5], table.concat(ids, ' '), 'EX', 86400)
end
if beat then redis.call('ZADD', KEYS[7], stamp, ARGV[2]) end -- who claims is alive
return {stamp, more, next < math.huge and string.format('%.6f', next) or '', damaged, got,
  known and {} or redis.call('SMEMBERS', KEYS[9])}
