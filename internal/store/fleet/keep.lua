-- keep is the heartbeat of a manager that handles tasks: it begins, renews or ends the lease. Another manager ends one that it has watched
-- unchanged for all of its length, by its own clock: so it counts also after Redis was away, and whatever steps TIME makes. What belongs to
-- leases that are over is dropped.
-- KEYS meta, handling
-- ARGV instance, what ('begin', 'renew' or 'end'), seconds (of the lease), formers (number of former instances that this one
--   replaces); then these, then the number of leases watched to their end, then instance and value of each, then the ids that it handles
-- Returns {1, {instance, value...}}, the leases of the others, each with another value after each heartbeat; or {0, ...} if the
-- lease is lost: it is not there any more, or one of the ids is another's. Then it is ended. Sent again: the same.
local all = redis.call('HGETALL', K.handling)
local lease, holder, over, others = {}, {}, {}, {}
for i = 1, #all, 2 do
  local instance = string.match(all[i], '^@(.*)$')
  if instance then lease[instance] = all[i + 1] else holder[all[i]] = all[i + 1] end
end
local function drop(instance)
  if lease[instance] then over[#over + 1] = '@' .. instance end
  lease[instance] = nil
end

local me = A.instance
local watched = #A + tonumber(A.formers) + 2
for i = #A + 1, watched - 2 do drop(ARGV[i]) end
local ids = watched + 2 * tonumber(ARGV[watched - 1])
for i = watched, ids - 1, 2 do
  if ARGV[i] ~= me and lease[ARGV[i]] == ARGV[i + 1] then drop(ARGV[i]) end
end
local kept = A.what == 'begin' or lease[me] ~= nil
for i = ids, #ARGV do kept = kept and holder[ARGV[i]] == me end
if kept and A.what ~= 'end' then
  lease[me] = string.format('%.6f', tonumber((now())) + tonumber(A.seconds))
else
  drop(me)
end

for id, instance in pairs(holder) do
  if not lease[instance] then over[#over + 1] = id end
end
table.sort(over)
paged('HDEL', K.handling, over)
if lease[me] then redis.call('HSET', K.handling, '@' .. me, lease[me]) end
for instance, value in pairs(lease) do
  if instance ~= me then others[#others + 1], others[#others + 2] = instance, value end
end
return {kept and 1 or 0, others}
