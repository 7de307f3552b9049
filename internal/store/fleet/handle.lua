-- handle grants ended tasks to a manager, so that it alone gives them to its handlers, and takes back those
-- it is done with. A grant raises the revision, the fence of every move that is no worker's: what a former holder
-- decided, to archive the task above all, is refused. Who has a lease lives: another manager's heartbeat ends it (keep.lua).
--
-- KEYS meta, handling; then the tasks asked for
-- ARGV instance, state (in which they must be), back (number of ids given back); then these, then the ids asked for
-- Returns for each id asked for its revision, or '' if another manager handles it or it is not in that state; or -1,
-- and nothing changes, if the lease is lost. Sent again: the same.
local living = {}
local function lives(instance)
  if living[instance] == nil then living[instance] = redis.call('HEXISTS', K.handling, '@' .. instance) == 1 end
  return living[instance]
end

if not lives(A.instance) then return -1 end
local back = tonumber(A.back)
for i = #A + 1, #A + back do
  if redis.call('HGET', K.handling, ARGV[i]) == A.instance then redis.call('HDEL', K.handling, ARGV[i]) end
end

-- grant returns the revision, or '' if the task cannot be had.
local granted = 0
local function grant(id, key)
  local holder = redis.call('HGET', K.handling, id)
  local t = redis.pcall('HMGET', key, 'state', 'rev')
  if t.err or t[1] ~= A.state then return '' end
  local rev = tonumber(t[2]) or 0
  if holder ~= A.instance then
    if holder and lives(holder) then return '' end
    rev = following(rev)
    redis.call('HSET', key, 'rev', string.format('%d', rev))
    redis.call('HSET', K.handling, id, A.instance)
    granted = granted + 1
  end
  return string.format('%d', rev)
end

local answer = {}
for i = 1, #ARGV - #A - back do
  answer[i] = grant(ARGV[#A + back + i], KEYS[#K + i])
end
if granted > 0 then counted(granted) end
return answer
