-- claim.lua: moves up to n due tasks from open to running.
-- KEYS: 1 prefix of task hashes, 2 open, 3 running, 4..6 deadline indices, 7.. ready buckets in order of preference
-- ARGV: 1 n, 2 worker, 3 claim id, 4 lease in seconds
-- Returns: for each task its id, round and all fields.
local now, out = clock(), {}
for _, id in ipairs(ready_take(tonumber(ARGV[1]), now, KEYS[2], 7)) do
  local key = KEYS[1] .. id
  local t = redis.call('HMGET', key, 'state', 'round', 'rev', 'log', 'end_before', 'timeout')
  if t[1] == 'open' and redis.call('ZREM', KEYS[2], id) == 1 then
    local r = t[2]
    redis.call('HSET', key, 'rev', next_rev(t[3]), 'state', 'running', r .. ':running', now.stamp, r .. ':worker', ARGV[2],
      r .. ':claim', ARGV[3], log_add(key, t[4], move_line(now, ARGV[2], id, 'open', 'running')))
    redis.call('ZADD', KEYS[3], now.stamp, id)
    due_run(4, id, now, t[5], t[6], tonumber(ARGV[4]))
    out[#out + 1] = {id, r, redis.call('HGETALL', key)}
  end
end
return out
