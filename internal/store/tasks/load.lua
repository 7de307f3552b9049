-- load reads tasks listed in a sorted set, for decisions. It writes nothing.
-- KEYS meta; then a sorted set of ids
-- ARGV how ('due': scores up to now, or 'rank'), first, most
-- Returns {now, score of the first entry beyond now or '', {{id, light fields...}...}, by how many microseconds now is ahead of TIME}; in
-- the place of the light fields {fields and values...} of a small task: to read all of it takes less than to search for each field.
local stamp, set, tasks = now(), KEYS[#K + 1], {}
local ids = A.how == 'due' and redis.call('ZRANGEBYSCORE', set, '-inf', stamp, 'LIMIT', A.first, A.most)
  or redis.call('ZRANGE', set, A.first, A.first + A.most - 1)
local packed = true -- tasks are alike: once one is not, none is asked about
for i, id in ipairs(ids) do
  local key = K.task(id)
  if packed then
    local form = redis.pcall('OBJECT', 'ENCODING', key) -- who may not ask, or another Redis, reads the fields one by one
    packed = form == 'listpack' or form == 'ziplist'
  end
  local all = packed and redis.pcall('HGETALL', key) or {err = ''}
  tasks[i] = all.err and {id, unpack(light(key))} or {id, all}
end
local later = redis.call('ZRANGEBYSCORE', set, '(' .. stamp, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {stamp, later[2] or '', tasks, wall.ahead}
