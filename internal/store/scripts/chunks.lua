-- chunks hands on what a program writes while it runs; the newest are kept.
--
-- KEYS[1] meta   KEYS[2] live:<id>
-- ARGV[1] most chunks to keep   ARGV[2] seconds after which they expire   then for each chunk: round, stream,
-- offset, data
-- Returns how many were new. Those among the last ones already, after a lost reply, are not repeated.
local function place(round, stream, offset) return round .. ' ' .. stream .. ' ' .. offset end

local there, added = {}, 0
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', (#ARGV - 2) / 4)) do
  local f = entry[2]
  there[place(f[2], f[4], f[6])] = true
end
for i = 3, #ARGV, 4 do
  if not there[place(ARGV[i], ARGV[i + 1], ARGV[i + 2])] then
    redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[1], '*', 'round', ARGV[i], 'stream', ARGV[i + 1],
      'offset', ARGV[i + 2], 'data', ARGV[i + 3])
    added = added + 1
  end
end
redis.call('EXPIRE', KEYS[2], ARGV[2])
return added
