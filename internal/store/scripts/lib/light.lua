-- light(key) reads what decisions are made from: an array of 41 texts, '' for
-- what is not there (order: lightFields in load.go), or {} if the key is no
-- hash or the hash has no usable round. What is fresh has not begun its round, which then is not read.
local function light(key, fresh)
  local t = redis.pcall('HMGET', key, 'state', 'round', 'rev', 'fails', 'timeouts', 'losses',
    'releases', 'faults', 'start_after', 'end_before', 'not_before', 'timeout', 'max_fails', 'max_timeouts',
    'max_losses', 'max_faults', 'queue', 'env', 'labels', 'resources', 'priority', 'outcome', 'cancel_requested',
    'charge', 'retry_delay', 'retry_backoff', 'retry_max_delay', 'retry_jitter', 'retry_exit_codes',
    'fatal_exit_codes', 'program', 'failed_nodes')
  if t.err then return {} end
  local round = t[2]
  t[41] = t[32]
  if round and not fresh then
    local r = redis.call('HMGET', key, round .. ':claim', round .. ':running', round .. ':executed',
      round .. ':worker', round .. ':incarnation', round .. ':node', round .. ':class', round .. ':exit_code')
    for i = 1, 8 do t[31 + i] = r[i] end
    t[40] = redis.call('HSTRLEN', key, round .. ':error') > 0 and '1' or ''
  end
  for i = 1, 41 do
    if not t[i] then t[i] = '' end
  end
  return t
end
