-- move makes decided moves, each on its own: if the task is where the decision
-- found it, it goes on; if not, nothing of it changes.
--
-- KEYS meta, due, wakeServer, buckets; then one set a state, then pairs: ready, wake; then one task a move
-- ARGV moves (their number), ttl (seconds that evidence counts), lost (state of a worker whose session is over); then the number of states, followed by their names in the
--   order of the sets, then the number of buckets, followed by their names, and for each move:
--   id, from, to, round, next round, fenced ('1' or ''), claim or revision, event, actor, counter or '',
--   deadline or '', wake ('server', 'ended', 'archived' or ''), index of the bucket the task comes into (negative:
--   leaves; 0: neither), writer as in logs, rest until or '', '1' if it may cross that a stop is asked for,
--   what it says of the node ('good', 'bad' or ''),
--   number of stamps, stamps; number of edges, "a -> b" each; number of lines, lines;
--   number of field values, fields and values; number of fields to drop, fields;
--   '1' if the move takes the task from its worker, else ''; the state to which a report goes on that settles its round, else '',
--   and only with such a state: the revision that was decided from, the last moment that settles or ''.
-- Returns for each move: 1 moved, 2 has been made before, 3 reported, but not settled, -1 stale claim, -2 the task has changed,
-- -3 the hash is missing or damaged, -4 a stop was asked for meanwhile; and the time as the last element.
-- An error, and nothing changes, if one of the sets or lists has another type.
local stamp, seconds = now()
local clock = tonumber(stamp)
local watch = redis.call('HGET', K.meta, 'quarantine') or 'off'

local states, sets = args(), {}
for i, name in ipairs(states) do sets[name] = KEYS[#K + i] end
local buckets = args()
local firstbucket = #K + #states -- KEYS before the pairs, and before the tasks
local firsttask = firstbucket + 2 * #buckets
local wake, filled, ended, retention = {}, {}, false, nil

local function read()
  return {id = arg(), from = arg(), to = arg(), round = arg(), nextround = arg(), fenced = arg() == '1',
    fence = arg(), event = arg(), actor = arg(), count = arg(), deadline = arg(), wake = arg(), bucket = tonumber(arg()),
    writer = arg(), rest = arg(), crosses = arg() == '1', evidence = arg(),
    stamps = args(), edges = args(), lines = args(), fields = args(), drop = args(), held = arg() == '1', onward = arg()}
end
local function onward(m)
  if m.onward ~= '' then m.rev, m.till = tonumber(arg()), tonumber(arg()) or math.huge end
  return m
end

-- unfit is an error reply if a key that a move writes has another type. Most moves of a call are alike.
local fit = {}
local function unfit(m)
  local kind = m.from .. ' ' .. m.to .. ' ' .. m.bucket .. m.wake .. m.onward
  if fit[kind] then return nil end
  fit[kind] = true
  local zsets, lists = {K.due, sets[m.from], sets[m.to], sets[m.onward]}, {}
  if m.bucket ~= 0 then
    local k = firstbucket + 2 * math.abs(m.bucket)
    zsets[#zsets + 1] = KEYS[k - 1]
    lists[1] = KEYS[k]
  end
  if m.wake == 'server' then lists[#lists + 1] = K.wakeServer end
  return wrongtype('zset', zsets) or wrongtype('list', lists) or m.bucket > 0 and wrongtype('set', {K.buckets}) or nil
end

-- current says whether a claim is of this epoch. One without an epoch is of the first.
local function current(claim) return (tonumber(string.match(claim, '^e(%d+)%-') or '') or 1) == epoch end

-- check compares; it writes nothing. Returns a code and the fields compared.
local function check(key, m)
  local t = redis.pcall('HMGET', key, 'state', 'round', 'rev', m.round .. ':claim', m.round .. ':end',
    'log', m.count ~= '' and m.count or 'state', 'start_after', 'not_before', 'cancel_requested', 'queue',
    'program', m.round .. ':node', 'plan', unpack(m.held and {m.round .. ':worker', m.round .. ':resources', m.round .. ':incarnation'} or {}))
  if t.err or not t[1] or not t[2] then return -3 end
  local rev = tonumber(t[3]) or 0
  if m.fenced then
    if t[1] == m.from and t[2] == m.round and t[4] == m.fence and current(m.fence) then
      if t[10] and t[10] ~= '' and not m.crosses then return -4 end
      return 1, t, rev
    end
    if t[4] == m.fence and t[5] == m.event then return 2 end
    return -1
  end
  if t[1] == m.from and t[2] == m.round and rev == tonumber(m.fence) then
    -- What a plan holds back since the decision was made stays.
    if m.event == 'unblock' and m.actor == 'server' and t[14] and redis.pcall('HGET', K.plan(t[14]), 'state') ~= 'ready' then
      return -2
    end
    return 1, t, rev
  end
  if t[1] == m.to and t[2] == m.nextround and rev == following(m.fence) then return 2 end
  return -2
end

-- live says whether a session is as it was when the round was claimed. A claim without one has none to lose.
local sessions = {}
local function live(worker, incarnation)
  if not worker or not incarnation then return true end
  local doc = sessions[worker] or redis.pcall('HMGET', K.workerDoc(worker), 'incarnation', 'state')
  sessions[worker] = doc
  return not doc.err and doc[1] == incarnation and doc[2] ~= A.lost
end

-- settle lets a report that was accepted go on to the end of its task, if what its worker has decided that from is so still:
-- the revision, the session, the time; and if nobody has asked for a stop, and no plan waits. It returns the code of the move.
local function settle(m, t, rev)
  if m.onward == '' then return 1 end
  if rev ~= m.rev or clock > m.till or t[10] and t[10] ~= '' or t[14] or not live(t[15], t[17]) then return 3 end
  m.via, m.to, m.wake = m.to, m.onward, 'ended'
  m.stamps[#m.stamps + 1] = m.round .. ':' .. m.to
  m.edges[#m.edges + 1] = m.via .. ' -> ' .. m.to
  return 1
end

local held = holders()
local function write(key, m, t, rev)
  if m.held and t[15] then held.leave(m.id, t[15], t[13] or '', t[11] or '', t[16] or nil) end
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
  set('rev', string.format('%d', following(rev)))
  set('log', log)
  if m.nextround ~= m.round then set('round', m.nextround) end
  if m.count ~= '' then set(m.count, string.format('%d', (tonumber(t[7]) or 0) + 1)) end
  if m.fenced then set(m.round .. ':end', m.event) end
  for _, field in ipairs(m.stamps) do set(field, stamp) end
  if m.rest ~= '' then set('not_before', m.rest) end
  -- A hold or a release that stamps again what was stamped when the task was made.
  if m.bucket ~= 0 and m.round == '0' and m.nextround == '0' then
    local made = redis.call('HMGET', key, 'created', '0:' .. m.to)
    if made[2] and not made[1] then set('created', made[2]) end
  end
  redis.call('HSET', key, unpack(v))
  if #m.drop > 0 then redis.call('HDEL', key, unpack(m.drop)) end
end

-- first notes on which node the task failed, at most 16 of them, and returns 1 if
-- it has not failed on any before, else 0.
local function first(key, node)
  local was = redis.call('HGET', key, 'failed_nodes') or ''
  local _, n = string.gsub(was, ',', '')
  if was == '' then
    redis.call('HSET', key, 'failed_nodes', node)
  elseif n < 15 and not string.find(',' .. was .. ',', ',' .. node .. ',', 1, true) then
    redis.call('HSET', key, 'failed_nodes', was .. ',' .. node)
  end
  return was == '' and 1 or 0
end

-- raised is a counter of a node, one higher. What is no number, by the hand of
-- another client, counts as 0: HINCRBY would fail, after the task has moved.
local function raised(text)
  local n = text and #text < 16 and string.match(text, '^%d+$') or 0
  return string.format('%d', tonumber(n) + 1)
end

-- succeeded ends the run of a node: earlier failures say nothing about now. Only
-- the server releases a quarantined node, after its probe.
local function succeeded(key, node, n, id)
  if n[1] then redis.call('HSET', key, 'era', raised(n[2])) end
  redis.call('HSET', key, 'passed', stamp)
  if n[4] and n[4] ~= '' then
    if n[3] == id then
      redis.call('HSET', key, 'probe', 'passed')
      token(K.wakeServer)
    end
    redis.call('HDEL', key, 'run', 'failing')
  elseif n[1] then
    redis.call('HDEL', key, 'run', 'failing', 'probe', 'trial_at')
    redis.pcall('SREM', K.suspects, node)
  end
end

-- with returns a list of at most 16 programs, such as 1:p3:q/r, with one more.
local function with(list, program)
  local at, count = 1, 0
  while at <= #list do
    local length, from = string.match(list, '^(%d+):()', at)
    if not length or count == 15 or string.sub(list, from, from + length - 1) == program then return list end
    at, count = from + length, count + 1
  end
  return list .. #program .. ':' .. program
end

-- failed adds to the run of a node, and to the list of programs it is made of.
local function failed(key, node, n, id, program)
  redis.call('HSET', key, 'run', raised(n[1]), 'failing', with(n[5] or '', program))
  if n[3] == id then redis.call('HSET', key, 'probe', 'failed') end
  redis.pcall('SADD', K.suspects, node)
end

-- record writes what was learned of a program on a node.
local function record(evidence, node, good, bad, run, fresh, era)
  redis.call('HSET', evidence, node, good .. ' ' .. bad .. ' ' .. run .. ' ' .. fresh .. ' ' .. era)
  if redis.call('TTL', evidence) < 0 then redis.call('EXPIRE', evidence, A.ttl) end
end

-- praised are successes that only have to be counted still, by node and evidence: the first one of a node has done the
-- rest. A failure there, or a probe, ends that.
local praised = {}
local function forget(node)
  for evidence, e in pairs(praised[node] or {}) do record(evidence, node, e[1], e[2], 0, 0, e[3]) end
  praised[node] = nil
end

-- learn notes how a program fared on its node, for the judge of nodes: "good bad
-- run fresh era". The run counts from the node's last success of anything, which begins
-- a new era. Keys of another type are no reason to keep the task.
local function learn(m, key, program, node)
  if m.evidence == '' or watch == 'off' or not node or node == '' then return end
  program = program or ''
  local evidence, noted = K.evidence(program), K.node(node)
  local alike = m.evidence == 'good' and praised[node] and praised[node][evidence]
  if alike then
    alike[1] = alike[1] + 1
    return
  end
  forget(node)
  local was = redis.pcall('HGET', evidence, node)
  local n = redis.pcall('HMGET', noted, 'run', 'era', 'probe', 'quarantined', 'failing')
  if type(was) == 'table' or n.err then return end
  local good, bad, run, fresh, since = string.match(was or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  local era = n[2] or '0'
  good, bad, run, fresh = tonumber(good) or 0, tonumber(bad) or 0, tonumber(run) or 0, tonumber(fresh) or 0
  if since ~= era or m.evidence == 'good' then run, fresh = 0, 0 end
  if m.evidence == 'good' then
    good = good + 1
    succeeded(noted, node, n, m.id)
    if not n[1] and not n[3] and not n[4] then
      praised[node] = {[evidence] = {good, bad, era}}
      return
    end
  else
    bad, run, fresh = bad + 1, run + 1, fresh + first(key, node)
    failed(noted, node, n, m.id, program)
  end
  record(evidence, node, good, bad, run, fresh, era)
end

-- What leaves a sorted set and what comes into it, for all moves at once. A task that moves twice in a call has them written before.
local leaves, comes, moved = {}, {}, {}
local function into(lists, key, one, two)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  list[#list + 1] = one
  if two then list[#list + 1] = two end
end

local function listed()
  for key, ids in pairs(leaves) do redis.call('ZREM', key, unpack(ids)) end
  for key, entries in pairs(comes) do redis.call('ZADD', key, unpack(entries)) end
  leaves, comes, moved = {}, {}, {}
end

-- index moves the task from set to set and from bucket to bucket. Where it
-- waits, its score is the time of the move, or that of its next start if that is later.
local function index(m, start)
  local score = m.bucket > 0 and start > clock and string.format('%.6f', start) or stamp
  moved[m.id] = true
  into(leaves, sets[m.from], m.id)
  into(comes, sets[m.to], score, m.id)
  if m.deadline ~= '' then
    into(comes, K.due, m.deadline, m.id)
  else
    into(leaves, K.due, m.id)
  end
  local k = firstbucket + 2 * math.abs(m.bucket)
  local member = string.char(96 + #m.id) .. m.id
  if m.bucket < 0 then
    redis.call('ZREM', KEYS[k - 1], member)
  elseif m.bucket > 0 then
    redis.call('ZADD', KEYS[k - 1], score, member)
    filled[buckets[m.bucket]] = true
    -- Waiters must learn of a start that is earlier than all they know.
    if start <= clock or redis.call('ZRANGE', KEYS[k - 1], 0, 0)[1] == member then wake[KEYS[k]] = true end
  end
  if m.to == 'archived' then
    retention = retention or redis.call('HGET', K.meta, 'retention') or ''
    if retention ~= '' then redis.pcall('ZADD', K.archivedAs(m.from), stamp, m.id) end -- see lib/retention.lua
  end
  if m.wake == 'server' then wake[K.wakeServer] = true end
  if m.wake == 'ended' or m.wake == 'archived' then ended = true end
end

-- tally counts the outcomes of a queue.
local tallies = {}
local function tally(m, queue)
  if m.wake ~= 'ended' then return end
  if not queue or queue == '' then queue = DEFAULT_QUEUE end
  local of = tallies[queue] or {}
  tallies[queue] = of
  of[m.to] = (of[m.to] or 0) + 1
end

-- plan notes what a move means to the plan of the task: what leaves `freed:`, what is left, and which dependants must hear
-- of an end. It is written once for all moves.
local plans, feeding = {}, {}
local function plan(key, m, id)
  local of = plans[id] or {moved = {}}
  plans[id] = of
  if m.from == 'blocked' then of.moved[#of.moved + 1] = m.id end
  if m.wake == 'ended' then
    local t = redis.call('HMGET', key, 'feeds', 'skipped', 'grows')
    of.ends = sum(of.ends or {}, m.to, t[2] == '1', 1)
    if t[1] == '1' then feeding[#feeding + 1] = 't' .. m.id end
    if t[3] == '1' then
      of.sources = of.sources or {}
      of.sources[#of.sources + 1] = {m.id, m.to, t[2] == '1'}
    end
  elseif m.to == 'blocked' and redis.pcall('HGET', K.plan(id), 'state') == 'held' then
    redis.pcall('ZADD', K.freed(id), m.id, m.id)
  end
end

local moves = {}
for i = 1, tonumber(A.moves) do
  moves[i] = onward(read())
  local wrong = unfit(moves[i])
  if wrong then return wrong end
end
local answer = {}
for i, m in ipairs(moves) do
  local key = KEYS[firsttask + i]
  if moved[m.id] then listed() end
  local code, t, rev = check(key, m)
  if code == 1 then
    code = settle(m, t, rev)
    write(key, m, t, rev)
    index(m, math.max(tonumber(moment(t[8] or '0')) or 0, tonumber(t[9]) or 0, tonumber(m.rest) or 0))
    learn(m, key, t[12], t[13])
    tally(m, t[11])
    if t[14] then plan(key, m, t[14]) end
    happened(m.id, m.round, m.from, m.via or m.to, m.event, m.actor, m.writer)
    if m.via then happened(m.id, m.round, m.via, m.to, 'settle', m.actor, m.writer) end
  end
  if code == -3 and redis.call('ZSCORE', sets[m.from], m.id) then -- a server is to look at it
    into(comes, K.due, stamp, m.id)
    token(K.wakeServer)
  end
  answer[i] = code
end
listed()
held.done()
for node in pairs(praised) do forget(node) end
for queue, of in pairs(tallies) do
  for outcome, n in pairs(of) do redis.pcall('HINCRBY', K.tally(queue), outcome, n) end
end
for id, of in pairs(plans) do
  if #of.moved > 0 then redis.pcall('ZREM', K.freed(id), unpack(of.moved)) end
  local counts = of.ends and account(id, of.ends)
  for _, t in ipairs(of.sources or {}) do sourced(id, t[1], t[2], t[3], stamp) end
  if counts then over(id, stamp) end
end
if #feeding > 0 then signal(stamp, feeding) end
local new = 0
for name in pairs(filled) do new = new + redis.call('SADD', K.buckets, name) end -- it may have been pruned
if new > 0 then -- nobody waits there
  redis.call('HINCRBY', K.meta, 'buckets', new)
  redis.call('PUBLISH', K.rules, '1')
end
for list in pairs(wake) do
  if redis.call('LLEN', list) == 0 then redis.call('LPUSH', list, '1') end
end
if ended then redis.call('PUBLISH', K.changed, '1') end
answer[#answer + 1] = stamp
return answer
