-- handle grants ended tasks to a manager, so that it alone gives them to its handlers, and takes back those
-- it is done with. A grant raises the revision, the fence of every move that is no worker's: what a former holder
-- decided, to archive the task above all, is refused. Who has a lease lives: another manager's heartbeat ends it (keep.lua).
--
-- KEYS[1] meta   KEYS[2] handling   KEYS[3..] the tasks asked for
-- ARGV[1] instance   ARGV[2] state in which they must be   ARGV[3] number of ids given back, followed by them,
-- then the ids asked for
-- Returns for each id asked for its revision, or '' if another manager handles it or it is not in that state; or -1,
-- and nothing changes, if the lease is lost. Sent again: the same.
local living = {}
local function lives(instance)
  if living[instance] == nil then living[instance] = redis.call('HEXISTS', KEYS[2], '@' .. instance) == 1 end
  return living[instance]
end

if not lives(ARGV[1]) then return -1 end
local back = tonumber(ARGV[3])
for i = 4, 3 + back do
  if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[1] then redis.call('HDEL', KEYS[2], ARGV[i]) end
end

-- grant returns the revision, or '' if the task cannot be had.
local granted = 0
local function grant(id, key)
  local holder = redis.call('HGET', KEYS[2], id)
  local t = redis.pcall('HMGET', key, 'state', 'rev')
  if t.err or t[1] ~= ARGV[2] then return '' end
  local rev = tonumber(t[2]) or 0
  if holder ~= ARGV[1] then
    if holder and lives(holder) then return '' end
    rev = following(rev)
    redis.call('HSET', key, 'rev', string.format('%d', rev))
    redis.call('HSET', KEYS[2], id, ARGV[1])
    granted = granted + 1
  end
  return string.format('%d', rev)
end

local answer = {}
for i = 4 + back, #ARGV do
  answer[#answer + 1] = grant(ARGV[i], KEYS[i - back - 1])
end
if granted > 0 then counted(granted) end
return answer
