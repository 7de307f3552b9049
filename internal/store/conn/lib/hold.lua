-- Holding: the tasks that were claimed, and what is written of them.
local request = string.format('e%d-%s', epoch, A.request) -- a claim of another epoch does not count
local got, logs, of = {}, {}, {} -- as the answer has them; the log and the queue of each

-- number returns the text of a number that is not negative, 'inf' for every spelling of infinity, or nil.
local function number(text)
  if text == '0' or text == 'inf' or string.match(text, '^%d+$') then return text end -- as mostly
  local lower = string.gsub(string.lower(text), '^%+', '')
  if lower == 'inf' or lower == 'infinity' then return 'inf' end
  local n = string.match(text, '^[%d.eE+-]+$') and tonumber(text)
  return n and n >= 0 and n < math.huge and text or nil
end

-- read returns a task as the answer has it, without its claim, and the log; or nil if the hash does not hold what it must. Most tasks have
-- the fields of their creation only, and perhaps a job, and are not asked for others: each that is missing is searched for among all that
-- are there.
local function read(id)
  local key = K.task(id)
  local fields = redis.pcall('HLEN', key)
  -- What is archived at once and has one field more has its job, mostly, and is asked for that in the same command.
  local b = fields == 18 and redis.pcall('HMGET', key--[[first]], 'plan') or redis.pcall('HMGET', key--[[first]])
  if not (b[1] and b[2] and b[10] and b[11] and b[12] and string.match(b[2], '^%d+$')) then return nil end
  for i = 3, 9 do
    b[i] = b[i] and number(b[i])
    if not b[i] then return nil end
  end
  local t = {id, '', '', '', b[1], b[2], '', unpack(b, 3, 12)}
  t[18] = b[17] or ''
  local known = b[17] and (string.sub(b[18] or '', 1, 1) == 'j' and 18 or 17) or 16
  -- The version of a source that the first worker pins is known by the job. Few sources end with the letter that it ends with.
  if not (b[13] and b[14] and b[15] and b[16]) or fields > known or string.byte(b[11], -1) == PIN_END
    and string.sub(b[11], -#PIN_FIRST) == PIN_FIRST then
    local more = redis.call('HMGET', key, 'rev'--[[more]])
    t[7] = more[1] or ''
    for i = 2, #more do t[17 + i] = more[i] or '' end
  end
  return t, b[13]
end

-- repeated gets the tasks that a former call of the same request claimed, as far as they are still held.
local function repeated(before)
  local n = 0
  for id in string.gmatch(before, ' (%d+)') do
    n = n + 1
    local t = read(id)
    local r = t and t[5] == 'running' and redis.call('HMGET', K.task(id), t[6] .. ':claim', t[6] .. ':running', t[6] .. ':resources')
    if r and r[1] == request .. '.' .. n then
      t[2], t[3], t[4] = r[1], r[2], r[3] or ''
      got[#got + 1], slots = t, slots - (tonumber(string.match(t[4], 'cpus:(%d+)') or '') or 1)
    end
  end
end

-- unclaimable is an error reply if a key that hold writes, and that was not read yet, has another type. SDIFF asks for many at once.
local function unclaimable()
  local sets, limited = {K.busyQueue(''), K.held}, limit
  if A.node ~= '' then sets[3] = K.busyNode end
  for _, q in ipairs(turns) do
    sets[#sets + 1] = q.busy
    if A.node ~= '' then sets[#sets + 1] = q.both end
    limited = limited or q.threads or q.maxthreads or q.demands
  end
  local asked = redis.pcall('SDIFF', unpack(sets))
  return asked.err and asked or wrongtype('zset', {K.running, K.due}) or limited and wrongtype('hash', {K.used, K.full}) or nil
end

-- deadline is the next moment a server must look at the task once it runs.
local function deadline(t)
  if t[9] == 'inf' and t[10] == 'inf' then return nil end
  local grace = tonumber(meta_timeout_grace or '')
  if not (grace and grace >= 0) then grace = DEFAULT_GRACE end -- the comparison also leaves out nan
  local most = t[10] ~= 'inf' and clock + tonumber(t[10]) + grace or math.huge
  local last = t[9] ~= 'inf' and tonumber(moment(t[9])) or math.huge
  return string.format('%.6f', math.min(most, last))
end

-- hold writes what was chosen: each task in its hash, then once for all the sets that count them and the indices by time.
local function hold()
  local ids, begun, ends, counted = {}, {}, {}, {}
  local head = datetime(wall.whole) .. ' - ' .. A.writer .. ' moving task '
  for i, t in ipairs(got) do ids[i] = t[1] end
  redis.call('ZREM', K.open, unpack(ids))
  for i, t in ipairs(got) do
    local id, round, q = t[1], t[6] .. ':', of[i]
    t[7] = string.format('%d', following(t[7]))
    local v = {'state', 'running', 'rev', t[7], round .. 'worker', A.worker, round .. 'claim', t[2], round .. 'running', stamp,
      'log', append(logs[i], head .. id .. ': open -> running')}
    if A.node ~= '' then v[13], v[14] = round .. 'node', A.node end
    if A.incarnation ~= '' then v[#v + 1], v[#v + 2] = round .. 'incarnation', A.incarnation end
    if t[4] ~= '' then
      redis.call('HSET', K.used, id, t[4])
      v[#v + 1], v[#v + 2] = round .. 'resources', t[4]
    end
    redis.call('HSET', K.task(id), unpack(v))
    counted[q] = counted[q] or {}
    counted[q][#counted[q] + 1] = id
    local due = deadline(t)
    if due then ends[#ends + 1], ends[#ends + 2] = due, id end
    happened(id, t[6], 'open', 'running', 'claim', 'worker', A.worker)
  end
  -- A short set is a list, which Redis reads from its head to find the place of a new member: the last one first, none is read twice.
  for i = #ids, 1, -1 do begun[#begun + 1], begun[#begun + 2] = stamp, ids[i] end
  redis.call('ZADD', K.running, unpack(begun))
  if #ends > 0 then redis.call('ZADD', K.due, unpack(ends)) end
  for q, some in pairs(counted) do
    redis.call('SADD', q.busy, unpack(some))
    if A.node ~= '' then redis.call('SADD', q.both, unpack(some)) end
  end
  if A.node ~= '' then redis.call('SADD', K.busyNode, unpack(ids)) end
  if A.incarnation ~= '' then redis.call('SADD', K.held, unpack(ids)) end
  if trial then -- a probe: how it ends decides, beside whatever else still runs here
    redis.call('HDEL', K.node, 'trial_at')
    redis.call('HSET', K.node, 'probe', ids[1])
  end
  redis.call('SET', K.lastClaim, request .. ' ' .. table.concat(ids, ' '), 'EX', 86400)
end
