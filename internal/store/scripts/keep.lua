-- keep is the heartbeat of a manager that handles tasks: it begins, renews or ends the lease. It counts also when the
-- lease is over by the clock, as long as nobody has taken a task over: Redis itself may have been away. What belongs to
-- leases that are over is dropped.
--
-- KEYS[1] meta   KEYS[2] handling
-- ARGV[1] instance   ARGV[2] 'begin', 'renew' or 'end'   ARGV[3] seconds of the lease   ARGV[4] number of former
-- instances that this one replaces, followed by them, then the ids that it handles
-- Returns 1, or 0 if the lease is lost: it is not there any more, or one of the ids is another's. Then it is ended.
-- Sent again: the same.
local stamp = now()
local clock = tonumber(stamp)
local all = redis.call('HGETALL', KEYS[2])
local till, holder = {}, {}
for i = 1, #all, 2 do
  local instance = string.match(all[i], '^@(.*)$')
  if instance then till[instance] = tonumber(all[i + 1]) or 0 else holder[all[i]] = all[i + 1] end
end

local me, formers, kept = ARGV[1], tonumber(ARGV[4]), ARGV[2] == 'begin' or till[ARGV[1]] ~= nil
for i = 5, 4 + formers do till[ARGV[i]] = till[ARGV[i]] and 0 end
for i = 5 + formers, #ARGV do kept = kept and holder[ARGV[i]] == me end
till[me] = kept and ARGV[2] ~= 'end' and clock + tonumber(ARGV[3]) or till[me] and 0

local over = {}
for instance, moment in pairs(till) do
  if moment <= clock then
    over[#over + 1] = '@' .. instance
    till[instance] = nil
  end
end
for id, instance in pairs(holder) do
  if not till[instance] then over[#over + 1] = id end
end
table.sort(over)
for i = 1, #over, 1000 do -- unpack has a limit
  redis.call('HDEL', KEYS[2], unpack(over, i, math.min(i + 999, #over)))
end
if till[me] then redis.call('HSET', KEYS[2], '@' .. me, string.format('%.6f', till[me])) end
return kept and 1 or 0
