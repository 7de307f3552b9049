-- plan makes a plan, which is being built: nothing of it runs before it is ready, unless it is a job.
-- KEYS meta, planID, request, plans
-- ARGV ttl (of the request, in seconds); then fields and values
-- Returns its id. Sent again with the same request: the same, and nothing changes; -id if one of the fields was another one. A job that
-- has gone, because it had no tasks or all of them have gone, is made again under its number: its submission may go on.
local before = redis.call('GET', K.request)
local gone = false
for i = #A + 1, before and #ARGV or 0, 2 do gone = gone or ARGV[i] == 'job' and redis.call('EXISTS', K.plan(before)) == 0 end
if before and not gone then
  for i = #A + 1, #ARGV, 2 do
    local was = redis.pcall('HGET', K.plan(before), ARGV[i])
    if type(was) == 'string' and was ~= ARGV[i + 1] then return -tonumber(before) end
  end
  return tonumber(before)
end
local wrong = wrongtype('hash', {K.meta}) or wrongtype('string', {K.planID}) or wrongtype('zset', {K.plans})
if wrong then return wrong end
local stamp = now()
local id = gone and tonumber(before) or (tonumber(redis.call('GET', K.planID) or '') or 0) + 1
if redis.call('EXISTS', K.plan(id)) == 1 then
  return redis.error_reply('ERR plan_id is behind the plans: set it to the highest id there is')
end
if not gone then redis.call('INCR', K.planID) end
redis.call('HSET', K.plan(id), 'state', 'building', 'created', stamp, 'total', '0', 'left', '0', 'bad', '0', unpack(ARGV, #A + 1))
redis.call('ZADD', K.plans, stamp, id)
redis.call('SET', K.request, id, 'EX', A.ttl)
counted(1)
return id
