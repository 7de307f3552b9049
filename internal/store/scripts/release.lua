-- release tells a page of the tasks that need a task how it ended. Those that need not wait any longer, or never will
-- run, are left for the servers to move.
--
-- KEYS[1] meta   KEYS[2] task   KEYS[3] its dependants   KEYS[4] its dependants that failed
-- ARGV[1] id   ARGV[2] most dependants to tell   ARGV[3..10] planning (lib/plans.lua)
-- Returns {1 if there are more, how many were told}. Sent again: the next page, or nothing changes.
local p = {unpack(ARGV, 3, 10)}
local id = ARGV[1]
local t = redis.pcall('HMGET', KEYS[2], 'state', 'outcome', 'plan', 'doomed_by', 'skipped')
local wrong = misfit('list', {KEYS[3], KEYS[4]}) or misfit('zset', {p[7]})
if wrong then return wrong end
local listed = redis.call('ZSCORE', p[7], 't' .. id)
local named = not t.err and t[3] and t[3] ~= '' and t[3]
wrong = named and (misfit('hash', {p[2] .. named}) or misfit('zset', {p[4] .. named}))
if wrong then return wrong end
local page = listed and named and redis.call('LPOP', KEYS[3], ARGV[2])
if not page then
  redis.call('ZREM', p[7], 't' .. id)
  return {0, 0}
end
local plan = redis.call('HMGET', p[2] .. t[3], 'state', 'on_failure')
local ended, skipped = ending(t[1], t[2]), t[5] == '1'
local cause = t[4] and t[4] ~= '' and t[4] or id
local stamp, free = now(), {}

local function tell(entry)
  local dependant, kind = string.match(entry, '^(%d+):?(%a*)$')
  if not dependant then return end
  local key = p[1] .. dependant
  local d = redis.pcall('HMGET', key, 'state', 'waits', 'doomed_by')
  if d.err or d[1] ~= 'blocked' then return end
  local v = verdict(kind, ended, skipped, plan[2])
  if v == 'wait' then return redis.call('RPUSH', KEYS[4], entry) end
  local waits = math.max(0, amount(d[2]) - 1)
  redis.call('HSET', key, 'waits', string.format('%d', waits))
  if v ~= 'met' and not d[3] then
    redis.call('HSET', key, 'doomed_by', cause, 'skipped', v == 'skip' and '1' or '')
    free[dependant] = true
  elseif waits == 0 then
    free[dependant] = true
  end
end

for _, entry in ipairs(page) do tell(entry) end
local some = false
for dependant in pairs(free) do
  redis.call('ZADD', p[4] .. t[3], dependant, dependant)
  some = true
end
if some and plan[1] == 'ready' then signal(p, 'p' .. t[3], stamp) end
local more = redis.call('EXISTS', KEYS[3])
if more == 0 then
  redis.call('ZREM', p[7], 't' .. id)
  if relocate(KEYS[4], KEYS[3]) and plan[1] == 'ready' then
    redis.call('HSET', p[2] .. t[3], 'state', 'held', 'held', stamp, 'held_by', id)
  end
end
counted(1)
return {more, #page}
