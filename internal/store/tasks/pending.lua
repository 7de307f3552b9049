-- pending reads the records of a kind that somebody has to look at: those that are due, the longest first, and those of which a task has ended.
-- KEYS meta
-- ARGV kind, most (of each of the two)
-- Returns {TIME in microseconds, when the next is due or '', how many there are, {{name, due or '', ended, version, value, opened}...}}.
now()
local time, due, ended = string.format('%.6f', wall.truth / 1000000), K.recordsDue(A.kind), K.recordsEnded(A.kind)
local names, seen, found = {}, {}, {}
for _, set in ipairs({redis.call('ZRANGE', ended, 0, A.most - 1), redis.call('ZRANGEBYSCORE', due, '-inf', time, 'LIMIT', 0, A.most)}) do
  for _, name in ipairs(set) do
    if not seen[name] then names[#names + 1] = name end
    seen[name] = true
  end
end
for i, name in ipairs(names) do
  local t = redis.pcall('HMGET', K.record(A.kind .. ':' .. name), 'version', 'value', 'opened') -- a spoilt one keeps no other from its turn
  found[i] = {name, redis.call('ZSCORE', due, name) or '', redis.call('ZSCORE', ended, name) or '0', t[1] or '', t[2] or '', t[3] or ''}
end
local after = redis.call('ZRANGEBYSCORE', due, '(' .. time, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {string.format('%d', wall.truth), after[2] or '', redis.call('ZCARD', K.records(A.kind)), found}
