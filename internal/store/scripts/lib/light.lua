-- light(key) reads what decisions are made from: an array of 24 texts, '' for
-- what is not there (order: lightFields in load.go), or {} if the key is no
-- hash or the hash has no usable round.
local function light(key)
  local t = redis.pcall('HMGET', key, 'state', 'round', 'rev', 'fails', 'timeouts', 'losses',
    'releases', 'start_after', 'end_before', 'timeout', 'max_fails', 'max_timeouts', 'max_losses',
    'queue', 'env', 'labels', 'priority', 'outcome')
  if t.err then return {} end
  local round = t[2]
  if round then
    local r = redis.call('HMGET', key, round .. ':claim', round .. ':running', round .. ':executed',
      round .. ':worker', round .. ':incarnation')
    t[19], t[20], t[21], t[23], t[24] = r[1], r[2], r[3], r[4], r[5]
    t[22] = redis.call('HSTRLEN', key, round .. ':error') > 0 and '1' or ''
  end
  for i = 1, 24 do
    if not t[i] then t[i] = '' end
  end
  return t
end
