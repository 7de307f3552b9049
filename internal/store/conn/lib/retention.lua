-- Retention: which archived tasks go, and what keeps one. Those that may go are in a sorted set for each outcome, archived:<outcome>,
-- beside that of archived ones. Those that something keeps are in one for each keeper instead: p<plan>, a plan that is not over, or t<id>,
-- a task that repeats it and is not archived.

-- keeps says whether a keeper still keeps its tasks. One that has been deleted keeps nothing.
local function keeps(keeper)
  local kind, id = string.match(keeper, '^(.?)(.*)$')
  if kind == 't' then
    local state = redis.pcall('HGET', K.task(id), 'state')
    return type(state) == 'string' and state ~= 'archived'
  end
  local t = redis.pcall('HMGET', K.plan(id), 'state', 'left')
  if t.err or not t[1] then return false end
  return t[1] ~= 'completed' and t[1] ~= 'failed' and t[1] ~= 'cancelled' or (tonumber(t[2] or '') or 0) > 0
end

local function keepers(plan, retried, replayed)
  local all = {}
  if tonumber(plan or '') then all[1] = 'p' .. plan end -- that of a job needs nothing of them
  for id in string.gmatch((retried or '') .. ' ' .. (replayed or ''), '%d+') do all[#all + 1] = 't' .. id end
  return all
end

local outcomes = OUTCOMES
