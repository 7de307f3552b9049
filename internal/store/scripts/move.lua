-- move makes decided moves, each on its own: if the task is where the decision
-- found it, it goes on; if not, nothing of it changes.
--
-- KEYS[1] meta   KEYS[2] due   KEYS[3] wake list of the servers   KEYS[4..] one set a state
-- then pairs: bucket, wake list of the bucket; then one task key a move
-- ARGV[1] number of moves   ARGV[2] channel of changes   ARGV[3] number of states, followed by their
-- names in the order of the sets   then the number of buckets and for each move:
--   id, from, to, round, next round, fenced ('1' or ''), claim or revision, event, counter or '',
--   deadline or '', wake ('server', 'ended' or ''), index of the bucket the task comes into (negative:
--   leaves; 0: neither), writer as in logs,
--   number of stamps, stamps; number of edges, "a -> b" each; number of lines, lines;
--   number of field values, fields and values; number of fields to drop, fields;
--   prefix of the sets of held tasks if the move takes the task from its worker, else ''. Which worker that is
--   becomes known here only, so the key of its set is made from the prefix.
-- Returns for each move: 1 moved, 2 has been made before, -1 stale claim, -2 the task has changed,
-- -3 the hash is missing or damaged; and the time as the last element.
-- An error, and nothing changes, if one of the sets or lists has another type.
local stamp, seconds = now()
local clock = tonumber(stamp)
local at = 2 -- ARGV[3] is read by the first args()
local function arg()
  at = at + 1
  return ARGV[at]
end
local function args()
  local list = {}
  for i = 1, tonumber(arg()) do list[i] = arg() end
  return list
end

local sets, place = {}, {}
for i, name in ipairs(args()) do
  sets[name], place[name] = KEYS[3 + i], 3 + i
end
local nsets = tonumber(ARGV[3])
local buckets = tonumber(arg())
local firsttask = 3 + nsets + 2 * buckets
local wake, ended = {}, false

local function read()
  local m = {id = arg(), from = arg(), to = arg(), round = arg(), nextround = arg(), fenced = arg() == '1',
    fence = arg(), event = arg(), count = arg(), deadline = arg(), wake = arg(), bucket = tonumber(arg()),
    writer = arg()}
  m.stamps, m.edges, m.lines, m.fields, m.drop, m.held = args(), args(), args(), args(), args(), arg()
  return m
end

-- unfit is an error reply if a key that a move writes has another type.
local function unfit(m)
  local zsets, lists = {2, place[m.from], place[m.to]}, {}
  if m.bucket ~= 0 then
    local k = 3 + nsets + 2 * math.abs(m.bucket)
    zsets[4] = k - 1
    lists[1] = k
  end
  if m.wake == 'server' then lists[#lists + 1] = 3 end
  return wrongtype('zset', zsets) or wrongtype('list', lists)
end

-- check compares; it writes nothing. Returns a code and the fields compared.
local function check(key, m)
  local t = redis.pcall('HMGET', key, 'state', 'round', 'rev', m.round .. ':claim', m.round .. ':end',
    'log', m.count ~= '' and m.count or 'state', 'start_after', m.round .. ':worker')
  if t.err or not t[1] or not t[2] then return -3 end
  local rev = tonumber(t[3]) or 0
  if m.fenced then
    if t[1] == m.from and t[2] == m.round and t[4] == m.fence then return 1, t, rev end
    if t[4] == m.fence and t[5] == m.event then return 2 end
    return -1
  end
  if t[1] == m.from and t[2] == m.round and rev == tonumber(m.fence) then return 1, t, rev end
  if t[1] == m.to and t[2] == m.nextround and rev == tonumber(m.fence) + 1 then return 2 end
  return -2
end

local function write(key, m, t, rev)
  local log = t[6]
  for _, line in ipairs(m.lines) do log = append(log, line) end
  local head = datetime(seconds) .. ' - ' .. m.writer .. ' moving task ' .. m.id .. ': '
  for _, edge in ipairs(m.edges) do log = append(log, head .. edge) end
  local v = m.fields
  local function set(field, value)
    v[#v + 1] = field
    v[#v + 1] = value
  end
  set('state', m.to)
  set('rev', string.format('%d', rev + 1))
  set('log', log)
  if m.nextround ~= m.round then set('round', m.nextround) end
  if m.count ~= '' then set(m.count, string.format('%d', (tonumber(t[7]) or 0) + 1)) end
  if m.fenced then set(m.round .. ':end', m.event) end
  for _, field in ipairs(m.stamps) do set(field, stamp) end
  redis.call('HSET', key, unpack(v))
  if #m.drop > 0 then redis.call('HDEL', key, unpack(m.drop)) end
  -- A set of another type is no reason to keep the task.
  if m.held ~= '' and t[9] then redis.pcall('SREM', m.held .. t[9], m.id) end
end

-- index moves the task from set to set and from bucket to bucket. Where it
-- waits, its score is the time of the move, or start_after if that is later.
local function index(m, start)
  local score = m.bucket > 0 and start > clock and string.format('%.6f', start) or stamp
  redis.call('ZREM', sets[m.from], m.id)
  redis.call('ZADD', sets[m.to], score, m.id)
  if m.deadline ~= '' then
    redis.call('ZADD', KEYS[2], m.deadline, m.id)
  else
    redis.call('ZREM', KEYS[2], m.id)
  end
  local k = 3 + nsets + 2 * math.abs(m.bucket)
  local member = string.char(96 + #m.id) .. m.id
  if m.bucket < 0 then
    redis.call('ZREM', KEYS[k - 1], member)
  elseif m.bucket > 0 then
    redis.call('ZADD', KEYS[k - 1], score, member)
    if start <= clock then wake[KEYS[k]] = true end
  end
  if m.wake == 'server' then wake[KEYS[3]] = true end
  if m.wake == 'ended' then ended = true end
end

local moves = {}
for i = 1, tonumber(ARGV[1]) do
  moves[i] = read()
  local wrong = unfit(moves[i])
  if wrong then return wrong end
end
local answer = {}
for i, m in ipairs(moves) do
  local key = KEYS[firsttask + i]
  local code, t, rev = check(key, m)
  if code == 1 then
    write(key, m, t, rev)
    index(m, tonumber(t[8]) or 0)
  end
  answer[i] = code
end
for list in pairs(wake) do
  if redis.call('LLEN', list) == 0 then redis.call('LPUSH', list, '1') end
end
if ended then redis.call('PUBLISH', ARGV[2], '1') end
answer[#answer + 1] = stamp
return answer
