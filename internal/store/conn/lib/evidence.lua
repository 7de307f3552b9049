-- Evidence for the judge of nodes: how programs fared on which node. Keys of another type are no reason to keep a task.

-- first notes on which node the task failed, at most 16 of them, and returns 1 if it has not failed on any before, else 0.
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

-- raised is a counter of a node, one higher. What is no number counts as 0: HINCRBY would fail, after the task has moved.
local function raised(text)
  return string.format('%d', (text and #text < 16 and tonumber(string.match(text, '^%d+$')) or 0) + 1)
end

-- succeeded ends the run of a node: earlier failures say nothing about now. Only the server releases a quarantined node, after its probe.
local function succeeded(key, node, n, id)
  if n[1] then redis.call('HSET', key, 'era', raised(n[2])) end
  redis.call('HSET', key, 'passed', (now()))
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

local function failed(key, node, n, id, program)
  redis.call('HSET', key, 'run', raised(n[1]), 'failing', with(n[5] or '', program))
  if n[3] == id then redis.call('HSET', key, 'probe', 'failed') end
  redis.pcall('SADD', K.suspects, node)
end

-- record writes "good bad run fresh era". The run counts from the last success of anything on the node, which begins a new era.
local function record(evidence, node, good, bad, run, fresh, era)
  local new = redis.call('HSET', evidence, node, good .. ' ' .. bad .. ' ' .. run .. ' ' .. fresh .. ' ' .. era)
  if new == 1 and redis.call('TTL', evidence) < 0 then redis.call('EXPIRE', evidence, EVIDENCE_TTL) end
end

-- praised are successes, by node and evidence, that are only to be counted: until a failure there, or a probe, ends that.
local praised = {}
local function forget(node)
  for evidence, e in pairs(praised[node] or {}) do record(evidence, node, e[1], e[2], 0, 0, e[3]) end
  praised[node] = nil
end

local function learn(id, good, key, program, node)
  if not node or node == '' then return end
  program = program or ''
  local evidence, noted = K.evidence(program), K.node(node)
  local alike = good and praised[node] and praised[node][evidence]
  if alike then
    alike[1] = alike[1] + 1
    return
  end
  forget(node)
  local was = redis.pcall('HGET', evidence, node)
  local n = redis.pcall('HMGET', noted, 'run', 'era', 'probe', 'quarantined', 'failing')
  if type(was) == 'table' or n.err then return end
  local done, bad, run, fresh, since = string.match(was or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  local era = n[2] or '0'
  done, bad, run, fresh = tonumber(done) or 0, tonumber(bad) or 0, tonumber(run) or 0, tonumber(fresh) or 0
  if since ~= era or good then run, fresh = 0, 0 end
  if good then
    done = done + 1
    succeeded(noted, node, n, id)
  else
    bad, run, fresh = bad + 1, run + 1, fresh + first(key, node)
    failed(noted, node, n, id, program)
  end
  if good and not n[1] and not n[3] and not n[4] then
    praised[node] = {[evidence] = {done, bad, era}}
  else
    record(evidence, node, done, bad, run, fresh, era)
  end
end
