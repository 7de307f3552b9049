-- chunks hands on what a program writes while it runs; the newest are kept.
--
-- KEYS[1] meta   KEYS[2] live:<id>   KEYS[3] task
-- ARGV[1] state the task must be in   ARGV[2] round   ARGV[3] claim   ARGV[4] most chunks to keep
-- ARGV[5] seconds after which they expire   then for each chunk: stream, offset, data
-- Returns how many were new, or -1, and nothing changes, if the claim is stale. Those among the last ones already,
-- after a lost reply, are not repeated.
local function place(round, stream, offset) return round .. ' ' .. stream .. ' ' .. offset end

local t = redis.call('HMGET', KEYS[3], 'state', 'round', ARGV[2] .. ':claim')
if t[1] ~= ARGV[1] or t[2] ~= ARGV[2] or t[3] ~= ARGV[3] then return -1 end
local there, added = {}, 0
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', (#ARGV - 5) / 3)) do
  local f = entry[2]
  there[place(f[2], f[4], f[6])] = true
end
for i = 6, #ARGV, 3 do
  if not there[place(ARGV[2], ARGV[i], ARGV[i + 1])] then
    redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[4], '*', 'round', ARGV[2], 'stream', ARGV[i],
      'offset', ARGV[i + 1], 'data', ARGV[i + 2])
    added = added + 1
  end
end
redis.call('EXPIRE', KEYS[2], ARGV[5])
return added
