-- load reads tasks listed in a sorted set, for decisions. It writes nothing.
--
-- KEYS[1] meta   KEYS[2] sorted set of ids
-- ARGV[1] task key prefix   ARGV[2] 'due' (scores up to now) or 'rank'   ARGV[3] offset   ARGV[4] limit
-- Returns {now, score of the first entry beyond now or '', {{id, light fields...}...}, by how many microseconds now is ahead of TIME}; in the place of the light fields
-- {fields and values...} of a small task: to read all of it takes less than to search for each field.
local stamp = now()
local ids
if ARGV[2] == 'due' then
  ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', stamp, 'LIMIT', ARGV[3], ARGV[4])
else
  ids = redis.call('ZRANGE', KEYS[2], ARGV[3], tonumber(ARGV[3]) + tonumber(ARGV[4]) - 1)
end
local tasks = {}
local packed = true -- tasks are alike: once one is not, none is asked about
for i, id in ipairs(ids) do
  local key = ARGV[1] .. id
  if packed then
    local form = redis.pcall('OBJECT', 'ENCODING', key) -- who may not ask, or another Redis, reads the fields one by one
    packed = form == 'listpack' or form == 'ziplist'
  end
  local all = packed and redis.pcall('HGETALL', key) or {err = ''}
  if all.err then
    tasks[i] = {id, unpack(light(key))}
  else
    tasks[i] = {id, all}
  end
end
local later = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. stamp, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {stamp, later[2] or '', tasks, wall.ahead}
