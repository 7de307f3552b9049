-- chunks hands on what a program writes while it runs; the newest are kept.
-- KEYS meta, live, task
-- ARGV state (the task must be in), round, claim, most (chunks to keep), ttl (seconds after which they expire);
--   then for each chunk: stream, offset, data
-- Returns how many were new: after a lost reply some are there already; or -1, and nothing changes, if the claim is stale.
local t = redis.call('HMGET', K.task, 'state', 'round', A.round .. ':claim')
if t[1] ~= A.state or t[2] ~= A.round or t[3] ~= A.claim then return -1 end
local there, added = {}, 0
for _, entry in ipairs(redis.call('XREVRANGE', K.live, '+', '-', 'COUNT', (#ARGV - #A) / 3)) do
  local f = entry[2]
  there[f[2] .. ' ' .. f[4] .. ' ' .. f[6]] = true
end
for i = #A + 1, #ARGV, 3 do
  local stream, offset, data = unpack(ARGV, i, i + 2)
  if not there[A.round .. ' ' .. stream .. ' ' .. offset] then
    redis.call('XADD', K.live, 'MAXLEN', A.most, '*', 'round', A.round, 'stream', stream, 'offset', offset, 'data', data)
    added = added + 1
  end
end
redis.call('EXPIRE', K.live, A.ttl)
return added
