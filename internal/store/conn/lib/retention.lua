-- Retention: which archived tasks go, and what keeps one. Those that may go are in a sorted set for each outcome, beside the set of
-- archived ones: <archived>:<outcome>. Those that something keeps are in a sorted set for each keeper instead: p<plan>, a plan that is not
-- over, or t<id>, a task that repeats it and is not archived.

-- keeps(keeper) says whether a keeper still keeps its tasks. One that has been deleted keeps nothing.
local function keeps(keeper)
  local kind, id = string.sub(keeper, 1, 1), string.sub(keeper, 2)
  if kind == 't' then
    local state = redis.pcall('HGET', K.task(id), 'state')
    return type(state) == 'string' and state ~= 'archived'
  end
  local t = redis.pcall('HMGET', K.plan(id), 'state', 'left')
  if t.err or not t[1] then return false end
  local over = t[1] == 'completed' or t[1] == 'failed' or t[1] == 'cancelled'
  return not over or (tonumber(t[2] or '') or 0) > 0
end

-- keepers(plan, retried, replayed) are those that may keep a task, by these fields of it.
local function keepers(plan, retried, replayed)
  local all = {}
  if plan and plan ~= '' then all[1] = 'p' .. plan end
  for id in string.gmatch((retried or '') .. ' ' .. (replayed or ''), '%d+') do all[#all + 1] = 't' .. id end
  return all
end

-- outcomes are the ends a task can be archived with.
local outcomes = {succeeded = true, failed = true, expired = true, timed_out = true, cancelled = true, terminated = true, orphaned = true}
