-- retally corrects what a job counts of its tasks, if nothing has changed there since these were read: servers of a release that knows no
-- jobs end its tasks without counting them. A job of which nothing is left is over then.
-- KEYS meta, plan, planTasks, freed
-- ARGV id, state, listed, purged, counted (left, as it was read), left, bad, failures; then outcomes ended in, or skipped, and how many
-- Returns 1 corrected, 2 it counts so already, 0 it has changed, or there is no such job.
local wrong = wrongtype('list', {K.planTasks}) or wrongtype('zset', {K.freed, K.draining})
if wrong then return wrong end
local fields, same = {'left', A.left, 'bad', A.bad}, true
for i = #A + 1, #ARGV, 2 do fields[#fields + 1], fields[#fields + 2] = 'n:' .. ARGV[i], ARGV[i + 1] end
for i = 1, #fields, 2 do same = same and amount(redis.call('HGET', K.plan, fields[i])) == tonumber(fields[i + 1]) end
if same then return 2 end
local t = redis.call('HMGET', K.plan, 'state', 'purged', 'left', 'job')
if t[1] ~= A.state or amount(t[2]) ~= tonumber(A.purged) or amount(t[3]) ~= tonumber(A.counted) or not t[4]
  or redis.call('LLEN', K.planTasks) ~= tonumber(A.listed) then
  return 0
end
local stamp = now()
redis.call('HSET', K.plan, 'failures', A.failures, unpack(fields))
over(A.id, stamp)
if redis.call('EXISTS', K.freed) == 1 and room(A.id) > 0 then signal(stamp, {'p' .. A.id}) end
counted(1)
return 1
