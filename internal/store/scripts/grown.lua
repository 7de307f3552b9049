-- grown is said by a server that has looked at the steps of a plan that are to be opened. Those that come to no task are
-- opened by it; if there are none, and nobody has nudged it meanwhile, nothing is to be done before the next nudge.
--
-- KEYS[1] meta   KEYS[2] plan:<id>   KEYS[3] growth:<id>
-- ARGV[1] id   ARGV[2] nudges that it knew of   ARGV[3] why steps cannot be opened, or ''   ARGV[4..11] planning (lib/plans.lua)
-- then for each step without tasks: index, 'opened' or 'skipped', the task whose lines it was for or ''
-- Returns 1, or 0 if it is to look again. Sent again: the same, and nothing changes.
local p = {unpack(ARGV, 4, 11)}
local wrong = misfit('hash', {KEYS[2], KEYS[3]}) or misfit('zset', {p[7]})
if wrong then return wrong end
local t = redis.call('HMGET', KEYS[2], 'state', 'growing', 'nudges', 'growth_error')
local growing = amount(t[2])

-- rest takes the plan off the list, and ends it if nothing is left to do.
local function rest(changed)
  if redis.call('ZREM', p[7], 'g' .. ARGV[1]) == 0 and not changed then return 1 end
  counted(1)
  if t[1] then over(p, ARGV[1], (now())) end
  return 1
end

if growing <= 0 and #ARGV == 11 then
  redis.call('DEL', KEYS[3])
  return rest(redis.call('HDEL', KEYS[2], 'growing', 'nudges', 'growth_error') > 0)
end
if (t[3] or '0') ~= ARGV[2] then return 0 end
if #ARGV == 11 then
  local changed = t[1] == 'ready' and ARGV[3] ~= (t[4] or '')
  if changed and ARGV[3] == '' then redis.call('HDEL', KEYS[2], 'growth_error') end
  if changed and ARGV[3] ~= '' then redis.call('HSET', KEYS[2], 'growth_error', ARGV[3]) end
  return rest(changed)
end
if t[1] ~= 'ready' then return 0 end
local before = growing
for i = 12, #ARGV, 3 do
  local name = ARGV[i] .. ':'
  if not redis.call('HGET', KEYS[3], name .. 'state') then
    redis.call('HSET', KEYS[3], name .. 'state', ARGV[i + 1], name .. 'source', ARGV[i + 2])
    growing = growing - 1
  end
end
if growing < before then
  redis.call('HSET', KEYS[2], 'growing', string.format('%d', growing))
  counted(1)
end
return 0
