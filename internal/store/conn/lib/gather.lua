-- Wide tasks: those that take several slots of their worker, as their demand says (cpus=4).
local gathering -- the queue for whose wide task the worker keeps its free slots

local function wide(b) return b.width > 1 and b.width > slots end

-- gathers decides whether the worker keeps its free slots for the tasks of a bucket, which take more than that. One worker does so for each
-- such task that is due: the first to meet it, until another one has more free slots. It says so again with each claim, every few seconds at
-- least, or it counts no longer.
local function gathers(q, b)
  if room <= 0 or places(q) <= 0 then return false end
  q.wide = true
  if slots <= 0 then return false end -- no slot is free
  local n, mine, least, fewest = 0, false, nil, math.huge
  local writes = not (dry or again)
  local me, all = 'w:' .. A.worker, redis.call('HGETALL', K.full)
  for i = 1, #all, 2 do
    local till, has, ready = string.match(all[i + 1], '^(%S+) (%d+) (.*)$')
    if till and (tonumber(till) or 0) <= clock then
      if writes then redis.call('HDEL', K.full, all[i]) end
    elseif ready == b.ready then
      n, mine = n + 1, mine or all[i] == me
      if tonumber(has) < fewest then least, fewest = all[i], tonumber(has) end
    end
  end
  if not mine and n >= redis.call('ZCOUNT', b.ready, '-inf', stamp) then
    if slots <= fewest then return false end
    if writes then redis.call('HDEL', K.full, least) end
  end
  gathering, room = q.name, 0
  if writes then redis.call('HSET', K.full, me, string.format('%.6f %d %s', clock + GATHER, slots, b.ready)) end
  return true
end
