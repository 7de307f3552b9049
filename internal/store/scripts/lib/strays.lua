-- strays(take) finds members of an index that do not belong there, by what the tasks themselves say, and takes
-- them out if it is to. A task whose key is of another type is damaged: it is set aside with all its entries.
--
-- KEYS[1] meta   KEYS[2] the index: due, ready:<bucket>, held:<worker>, stop:<worker>, archived:<outcome> or a state
-- ARGV[1] task key prefix   ARGV[2] which: due, ready, held, stop, archived or state   ARGV[3] name of the worker, or the outcome
-- ARGV[4], ARGV[5] states of tasks that are open, and that run
-- ARGV[6..10] queue, env, labels, priority and resources of the bucket   then members
-- Returns the members that are there and do not belong there; in a state, those that are no id.
local kind, open, running = ARGV[2], ARGV[4], ARGV[5]
local sorted = kind ~= 'held' and kind ~= 'stop'

-- idof is the id that a member stands for, or nil.
local function idof(member)
  if kind == 'stop' then return string.match(member, '^d?([1-9]%d*)$') end
  if kind ~= 'ready' then return string.match(member, '^[1-9]%d*$') end
  local id = string.match(member, '^%l([1-9]%d*)$')
  return id and member == string.char(96 + #id) .. id and id or nil
end

local function runs(t, key, member)
  if t[1] ~= running or not t[2] then return false end
  local r = redis.call('HMGET', key, t[2] .. ':worker', t[2] .. ':incarnation')
  if r[1] ~= ARGV[3] then return false end
  return kind == 'held' and r[2] or kind == 'stop' and (string.sub(member, 1, 1) == 'd' or t[8] and t[8] ~= '')
end

-- waits says whether the task waits in this bucket.
local function waits(t)
  local queue = t[3] and t[3] ~= '' and t[3] or 'default'
  return t[1] == open and queue == ARGV[6] and (t[4] or '') == ARGV[7] and (t[5] or '') == ARGV[8]
    and (tonumber(t[6] or '') or 0) == tonumber(ARGV[9]) and (t[7] or '') == ARGV[10]
end

-- A report keeps its deadline until it is settled, if a foreign client has made it.
local lasting = {blocked = true, executed = true, [open] = true, [running] = true}

local function belongs(member)
  local id = idof(member)
  if not id then return false end
  if kind == 'state' then return true end
  local key = ARGV[1] .. id
  local t = redis.pcall('HMGET', key, 'state', 'round', 'queue', 'env', 'labels', 'priority', 'resources', 'cancel_requested', 'outcome')
  if t.err then return true end
  if kind == 'due' then return lasting[t[1]] end
  if kind == 'ready' then return waits(t) end
  if kind == 'archived' then return t[1] == 'archived' and t[9] == ARGV[3] end
  return runs(t, key, member)
end

local function strays(take)
  local wrong = wrongtype(sorted and 'zset' or 'set', {2})
  if wrong then return wrong end
  local found = {}
  for i = 11, #ARGV do
    local there = sorted and redis.call('ZSCORE', KEYS[2], ARGV[i]) or not sorted and redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 1
    if there and not belongs(ARGV[i]) then
      found[#found + 1] = ARGV[i]
      if take then redis.call(sorted and 'ZREM' or 'SREM', KEYS[2], ARGV[i]) end
    end
  end
  return found
end
