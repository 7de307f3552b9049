-- Plans: what a task waits for, and what waits for it. A plan may have steps that are opened once the lines of a result are known
-- (growth.lua): `growing` counts them, and it is not over before they are opened, or it is sure that they cannot be.
-- Fields of a task: grows, '1' if its lines are such a result; plan; needs, "12 7:any 12", in the order of its arguments; waits, how many
-- tasks it still waits for; feeds, '1' if others need it; doomed_by, the id because of which it can never run; skipped, '1' if that is no
-- failure. A blocked task that need not wait any longer, or never will run, is in the set of those to be moved.

-- ending is what a task came to, or nil.
local ends = OUTCOMES
local function ending(state, outcome)
  if state == 'archived' then state = outcome end
  return ends[state] and state or nil
end

-- verdict says what an end means to who needs it: 'met', 'never', 'skip' (never, but that is no failure), or 'wait'.
local function verdict(kind, ended, skipped, on)
  if not ended then return 'wait' end
  if kind == 'any' then return 'met' end
  if skipped then return 'skip' end
  if kind == 'failure' then return ended == 'succeeded' and 'skip' or 'met' end
  if ended == 'succeeded' or on == 'continue' then return 'met' end
  return on == 'hold' and 'wait' or 'never'
end

-- signal gives the servers work: t<id> for a task, p<id> for a plan, g<id> for its steps not opened yet.
local function signal(stamp, members)
  local v = {}
  for i, member in ipairs(members) do v[2 * i - 1], v[2 * i] = stamp, member end
  redis.pcall('ZADD', K.draining, 'NX', unpack(v))
  if redis.pcall('LLEN', K.wakeServer) == 0 then redis.pcall('LPUSH', K.wakeServer, '1') end
end

-- relocate moves a list to another key, and reports whether there was anything to move.
local function relocate(from, to)
  for first = 0, redis.call('LLEN', from) - 1, 1000 do
    redis.call('RPUSH', to, unpack(redis.call('LRANGE', from, first, first + 999)))
  end
  return redis.call('DEL', from) == 1
end

-- amount(text) is a counter that somebody may have damaged.
local function amount(text) return tonumber(text or '') or 0 end

-- nudge makes servers look which steps of a plan can be opened. One that has looked names the nudge it knew of, so none is missed.
local function nudge(plan, stamp)
  local t = redis.pcall('HMGET', K.plan(plan), 'growing', 'nudges')
  if not t.err and amount(t[1]) <= 0 then return end
  if not t.err then redis.call('HSET', K.plan(plan), 'nudges', string.format('%d', amount(t[2]) + 1)) end
  signal(stamp, {'g' .. plan})
end

-- meets says whether the end of a plan is what a job that comes after it waits for.
local function meets(kind, state) return kind == 'any' or (kind == 'failure') == (state ~= 'completed') end

-- follow tells the jobs that come after a plan how it ended. The last end that one waits for makes it ready, unless a person holds it;
-- one that does not suit cancels it.
local function follow(plan, jobs, state, stamp)
  redis.call('HDEL', K.plan(plan), 'before')
  for id, kind in string.gmatch(jobs, '(%d+):?(%a*)') do
    local key = K.plan(id)
    local t = redis.pcall('HMGET', key, 'state', 'awaits', 'held_by')
    if not t.err and t[1] == 'held' and t[2] then
      local last = amount(t[2]) <= 1
      local to = not meets(kind, state) and 'cancelled' or last and string.match(t[3] or '', '^job j%d+$') and 'ready'
      if to then
        redis.call('HSET', key, 'state', to, to, stamp)
        redis.call('HDEL', key, 'held_by', 'awaits')
        if to == 'cancelled' then redis.call('HSET', key, 'doomed_by', 'j' .. plan) end
        signal(stamp, {'p' .. id})
      elseif last then
        redis.call('HDEL', key, 'awaits')
      else
        redis.call('HSET', key, 'awaits', string.format('%d', amount(t[2]) - 1))
      end
    end
  end
end

-- room is how many more tasks of a plan may be opened now: those that are not among the ones to be opened take a place until they end.
local function room(plan)
  local t = redis.pcall('HMGET', K.plan(plan), 'window', 'left')
  local window, waiting = t[1] and tonumber(t[1]), redis.pcall('ZCARD', K.freed(plan))
  if not window or type(waiting) ~= 'number' then return 1e9 end
  return window - (amount(t[2]) - waiting)
end

-- over ends a plan in which nothing is left to do. Of one that has steps to be opened the servers say so first: it is over if they have
-- looked, and what these steps hang on has failed.
local function over(plan, stamp)
  local key = K.plan(plan)
  local t = redis.call('HMGET', key, 'state', 'left', 'bad', 'growing', 'growth_error', 'before')
  if amount(t[2]) > 0 then return end
  local bad = amount(t[3]) > 0 or t[5]
  if amount(t[4]) > 0 and t[1] ~= 'cancelled' then
    if t[1] == 'held' or redis.pcall('ZSCORE', K.draining, 'g' .. plan) then return end
    if not bad then return signal(stamp, {'g' .. plan}) end
  end
  if t[1] == 'ready' or t[1] == 'held' then
    t[1] = bad and 'failed' or 'completed'
    redis.call('HSET', key, 'state', t[1], 'ended', stamp)
    redis.call('HDEL', key, 'held_by', 'awaits')
  elseif t[1] == 'cancelled' then
    redis.call('HSET', key, 'ended', stamp)
  else
    return
  end
  if t[6] then follow(plan, t[6], t[1], stamp) end
end

-- sum notes an end of a task for account, or, with n = -1, that there was none.
local function sum(ends, outcome, skipped, n)
  local name = skipped and 'n:skipped' or 'n:' .. outcome
  local bad = outcome ~= 'succeeded' and not skipped
  ends.left = (ends.left or 0) - n
  ends[name] = (ends[name] or 0) + n
  ends.bad = (ends.bad or 0) + (bad and n or 0)
  return ends
end

-- remaining is what counting has left; nil if there is no plan to count in.
local function remaining(key, left)
  if type(left) ~= 'number' then return nil end
  if left < 0 and redis.call('HEXISTS', key, 'state') == 0 then
    redis.call('HDEL', key, 'left')
    return nil
  end
  return left
end

-- account counts ends of tasks in their plan, and returns how many tasks are left, nil if it could not count, and how many ended badly,
-- if that has changed. For those that succeeded it is one command: what is not left and has not ended otherwise has. A plan that was damaged
-- by hand is no reason to fail.
local function account(plan, ends)
  local key = K.plan(plan)
  local left = remaining(key, redis.pcall('HINCRBY', key, 'left', ends.left))
  if not left then return nil end
  local bad
  for name, n in pairs(ends) do
    local is = name ~= 'left' and name ~= 'n:succeeded' and n ~= 0 and redis.pcall('HINCRBY', key, name, n)
    if name == 'bad' then bad = tonumber(is) end
  end
  return left, bad
end

-- blame notes in a job which of its tasks ended badly first, so that nobody has to look for them among all.
local function blame(plan, ended)
  local first = redis.pcall('HGET', K.plan(plan), 'failures')
  first = type(first) == 'string' and first or ''
  local _, n = string.gsub(first, '%d+', '')
  for _, t in ipairs(ended) do
    if n < MOST_FAILURES and t.outcome ~= 'succeeded' and not t.skipped then
      first, n = first .. (n > 0 and ' ' or '') .. t.id, n + 1
    end
  end
  redis.pcall('HSET', K.plan(plan), 'failures', first)
end

-- forgive takes a task that is retried out of these.
local function forgive(plan, id)
  local first, kept = redis.pcall('HGET', K.plan(plan), 'failures'), {}
  if type(first) ~= 'string' then return end
  for one in string.gmatch(first, '%d+') do
    if one ~= id then kept[#kept + 1] = one end
  end
  redis.pcall('HSET', K.plan(plan), 'failures', table.concat(kept, ' '))
end

-- sourced is for a task that has ended whose lines steps of the plan are for. On hold after a failure these need it like any other.
local function sourced(plan, id, outcome, skipped, stamp)
  nudge(plan, stamp)
  local t = redis.pcall('HMGET', K.plan(plan), 'state', 'on_failure', 'growing')
  if not t.err and t[1] == 'ready' and amount(t[3]) > 0 and verdict('success', outcome, skipped, t[2]) == 'wait' then
    redis.call('HSET', K.plan(plan), 'state', 'held', 'held', stamp, 'held_by', id)
  end
end
