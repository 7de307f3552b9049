-- judge writes what a server found about a node, if the node is as it was then.
--
-- KEYS[1] meta   KEYS[2] node:<node>   KEYS[3] wake list of the node   KEYS[4] nodes   KEYS[5] suspects
-- ARGV[1] node   ARGV[2..7] as it was: run, era, since when it is set aside, trials, next trial, probe
-- ARGV[8..13] as it is to be; '' for no such field
-- ARGV[14] reason
-- Returns 1, or 0 and nothing changes. Sent again: the same, as long as nothing else has happened to the node.
local wrong = wrongtype('hash', {2}) or wrongtype('list', {3}) or wrongtype('set', {4, 5})
if wrong then return wrong end
local fields = {'run', 'era', 'quarantined', 'trials', 'trial_at', 'probe'}
local is = redis.call('HMGET', KEYS[2], unpack(fields))
local function at(first)
  for i = 1, 6 do
    if (is[i] or '') ~= ARGV[first + i - 1] then return false end
  end
  return true
end
if not at(2) then return at(8) and 1 or 0 end
local function set(field, value)
  if value == '' then redis.call('HDEL', KEYS[2], field) else redis.call('HSET', KEYS[2], field, value) end
end
counted(1)
redis.call('SADD', KEYS[4], ARGV[1])
for i, field in ipairs(fields) do set(field, ARGV[7 + i]) end
set('reason', ARGV[14])
if ARGV[10] ~= '' or (tonumber(ARGV[8]) or 0) > 0 then
  redis.call('SADD', KEYS[5], ARGV[1])
else
  redis.call('SREM', KEYS[5], ARGV[1])
end
token(KEYS[3]) -- who waits there may claim again, or hears when he may
return 1
