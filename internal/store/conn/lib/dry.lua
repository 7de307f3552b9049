-- A dry claim: the last of ARGV are the place of a queue among the queues, of a bucket in it (0: the question is about the queue alone),
-- the member of a task in that bucket, and the moment of the claim, if that is later than now.
local asked = {queue = tonumber(ARGV[#ARGV - 3]), bucket = tonumber(ARGV[#ARGV - 2]), member = ARGV[#ARGV - 1]}

local function left(n) return n < math.huge and string.format('%d', n) or '' end

-- overtaken is how many tasks of a queue are claimed before one, whose place is mine, as their priorities and times say.
local function overtaken(q, mine)
  local n, text = 0, function(score) return string.format('%.6f', score) end
  for _, b in ipairs(q.buckets) do
    local from, to, higher = '-inf', clock, b.priority - mine.rank
    if q.aging > 0 and higher <= 0 then -- a rank above mine, or the same and in line before
      local same = clock + higher * q.aging
      to = math.max(same - q.aging, math.min(mine.score, same))
    elseif higher < 0 then
      from = '+inf'
    elseif higher == 0 and q.lifo then
      from = text(mine.score)
    elseif higher == 0 then
      to = mine.score
    end
    n = n + redis.call('ZCOUNT', b.ready, from, text(to))
  end
  return n
end

-- line says what of its queue is before the task: {next task, its priority and rank, how many are before, how many are due in how many
-- queues}, if one is that finds all it asks, else {}; and what is kept of what it asks itself, and for which task. What those before it in
-- turn ask and do not find, they keep.
local function line(q, mine)
  local but, kept, first = {}, {}, nil
  local b = foremost(q)
  while b and b.member ~= mine.member and precedes(q, b, mine) do
    first = first or b.member
    if b.demand == '' or not free.short(b.demand, kept) then
      local due, busy = 0, 0
      for _, other in ipairs(queues) do
        local n = 0
        for _, o in ipairs(other.buckets) do n = n + redis.call('ZCOUNT', o.ready, '-inf', string.format('%.6f', clock)) end
        due, busy = due + n, busy + (n > 0 and 1 or 0)
      end
      return {string.sub(b.member, 2), b.priority, b.rank, overtaken(q, mine) - (mine.due and 1 or 0), due, busy}, '', ''
    end
    free.keep(b.demand, kept)
    but[b] = true
    b = foremost(q, but)
  end
  for name in string.gmatch(mine.demand, '([%w_]+)=') do
    if kept[name] then return {}, name, string.sub(first, 2) end
  end
  return {}, '', ''
end

-- hindrance is what keeps the task from being the first that the claim takes from its queue, were the limits higher: what it asks and
-- others have, as lend says; and once that is free, what line says. A task that is not in line would be the last.
local function hindrance(q)
  local b = q.buckets[asked.bucket]
  if not b then return {}, {}, '', '' end
  local score = tonumber(redis.call('ZSCORE', b.ready, asked.member) or '')
  local mine = {member = asked.member, score = math.min(score or clock, clock), demand = b.demand, due = score and score <= clock}
  mine.rank = b.priority + waited(q, mine.score)
  free = resources()
  return free.lend(b.demand), line(q, mine)
end

-- report answers. Its queue has the first turn.
local function report()
  local q, first = queues[asked.queue], tonumber(A.first)
  places(q)
  local all = {left(q.fleet), left(q.here), left(ungated), gated and '1' or '', hindrance(q)}
  free = nil -- what was lent is taken again
  for i, other in ipairs(turns) do
    if other == q then first = i - 1 end
  end
  choose(turns, first)
  all[9] = ''
  for _, t in ipairs(got) do
    if t[1] == string.sub(asked.member, 2) then all[9] = '1' end
  end
  all[10] = all[9] == '' and gathering ~= q.name and gathering or ''
  return all
end
