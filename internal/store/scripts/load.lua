-- load reads tasks listed in a sorted set, for decisions. It writes nothing.
--
-- KEYS[1] meta   KEYS[2] sorted set of ids
-- ARGV[1] task key prefix   ARGV[2] 'due' (scores up to now) or 'rank'   ARGV[3] offset   ARGV[4] limit
-- Returns {now, score of the first entry beyond now or '', {{id, light fields...}...}}.
local stamp = now()
local ids
if ARGV[2] == 'due' then
  ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', stamp, 'LIMIT', ARGV[3], ARGV[4])
else
  ids = redis.call('ZRANGE', KEYS[2], ARGV[3], tonumber(ARGV[3]) + tonumber(ARGV[4]) - 1)
end
local tasks = {}
for i, id in ipairs(ids) do tasks[i] = {id, unpack(light(ARGV[1] .. id))} end
local later = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. stamp, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {stamp, later[2] or '', tasks}
