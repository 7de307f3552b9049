-- report.lua: moves running tasks to executed, with their results.
-- KEYS: 1 prefix of task hashes, 2 running, 3 executed, 4..6 deadline indices
-- ARGV: 1 worker, then 6 values a task: id round claim output error exit_code
-- Returns: for each task 1 moved or 0 refused.
local now, out = clock(), {}
for i = 2, #ARGV, 6 do
  local id, r = ARGV[i], ARGV[i + 1]
  local key = KEYS[1] .. id
  local t = redis.call('HMGET', key, 'state', 'round', r .. ':claim', 'rev', 'log')
  if t[1] == 'running' and t[2] == r and t[3] == ARGV[i + 2] then
    redis.call('HSET', key, 'rev', next_rev(t[4]), 'state', 'executed', r .. ':executed', now.stamp, r .. ':output', ARGV[i + 3],
      r .. ':error', ARGV[i + 4], r .. ':exit_code', ARGV[i + 5],
      log_add(key, t[5], move_line(now, ARGV[1], id, 'running', 'executed')))
    redis.call('ZREM', KEYS[2], id)
    redis.call('ZADD', KEYS[3], now.stamp, id)
    due_drop(4, id)
    out[#out + 1] = 1
  else
    out[#out + 1] = 0
  end
end
return out
