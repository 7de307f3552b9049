-- light(key) reads what decisions are made from: a text for each of lightFields in load.go, '' for a missing one, or {} if there is no hash
-- with a usable round. The last ten belong to the round (lib/rounds.lua knows their places); they are not read of a fresh task.
local function light(key, fresh)
  local t = redis.pcall('HMGET', key, 'state', 'round'--[[header]])
  if t.err then return {} end
  local round, n = t[2], #t
  if round and not fresh then
    local r = redis.call('HMGET', key, round .. ':claim', round .. ':running', round .. ':executed',
      round .. ':worker', round .. ':incarnation', round .. ':node', round .. ':class', round .. ':exit_code', round .. ':retry')
    for i = 1, 9 do t[n + i] = r[i] end
    t[n + 10] = redis.call('HSTRLEN', key, round .. ':error') > 0 and '1' or ''
  end
  for i = 1, n + 10 do t[i] = t[i] or '' end
  return t
end
