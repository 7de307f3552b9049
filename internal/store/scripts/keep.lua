-- keep is the heartbeat of a manager that handles tasks: it begins, renews or ends the lease. No clock ends one: another
-- manager does that which has watched it unchanged for all of its length, by its own clock. So a lease counts also after Redis
-- itself was away, and whatever steps TIME makes. What belongs to leases that are over is dropped.
--
-- KEYS[1] meta   KEYS[2] handling
-- ARGV[1] instance   ARGV[2] 'begin', 'renew' or 'end'   ARGV[3] seconds of the lease   ARGV[4] number of former instances that
-- this one replaces, followed by them, then the number of leases watched to their end, followed by instance and value of each,
-- then the ids that it handles
-- Returns {1, {instance, value...}}, the leases of the others, each with another value after each heartbeat; or {0, ...} if the
-- lease is lost: it is not there any more, or one of the ids is another's. Then it is ended. Sent again: the same.
local all = redis.call('HGETALL', KEYS[2])
local lease, holder = {}, {}
for i = 1, #all, 2 do
  local instance = string.match(all[i], '^@(.*)$')
  if instance then lease[instance] = all[i + 1] else holder[all[i]] = all[i + 1] end
end

local over = {}
local function drop(instance)
  if lease[instance] then over[#over + 1] = '@' .. instance end
  lease[instance] = nil
end

local me, formers = ARGV[1], tonumber(ARGV[4])
for i = 5, 4 + formers do drop(ARGV[i]) end
local ids = 6 + formers + 2 * tonumber(ARGV[5 + formers])
for i = 6 + formers, ids - 1, 2 do
  if ARGV[i] ~= me and lease[ARGV[i]] == ARGV[i + 1] then drop(ARGV[i]) end
end
local kept = ARGV[2] == 'begin' or lease[me] ~= nil
for i = ids, #ARGV do kept = kept and holder[ARGV[i]] == me end
if kept and ARGV[2] ~= 'end' then
  lease[me] = string.format('%.6f', tonumber((now())) + tonumber(ARGV[3]))
else
  drop(me)
end

for id, instance in pairs(holder) do
  if not lease[instance] then over[#over + 1] = id end
end
table.sort(over)
for i = 1, #over, 1000 do -- unpack has a limit
  redis.call('HDEL', KEYS[2], unpack(over, i, math.min(i + 999, #over)))
end
if lease[me] then redis.call('HSET', KEYS[2], '@' .. me, lease[me]) end
local others = {}
for instance, value in pairs(lease) do
  if instance ~= me then
    others[#others + 1] = instance
    others[#others + 1] = value
  end
end
return {kept and 1 or 0, others}
