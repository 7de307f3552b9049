-- archive.lua: moves succeeded tasks to archived, if they are still as they were read.
-- KEYS: 1 prefix of task hashes, 2 succeeded, 3 archived
-- ARGV: 1 manager, then 3 values a task: id round rev
-- Returns: for each task 1 moved or 0 refused.
local now, out = clock(), {}
for i = 2, #ARGV, 3 do
  local id, r = ARGV[i], ARGV[i + 1]
  local key = KEYS[1] .. id
  local t = redis.call('HMGET', key, 'state', 'round', 'rev', 'log')
  if t[1] == 'succeeded' and t[2] == r and t[3] == ARGV[i + 2] then
    redis.call('HSET', key, 'rev', next_rev(t[3]), 'state', 'archived', 'outcome', 'succeeded', r .. ':archived', now.stamp,
      log_add(key, t[4], move_line(now, ARGV[1], id, 'succeeded', 'archived')))
    redis.call('ZREM', KEYS[2], id)
    redis.call('ZADD', KEYS[3], now.stamp, id)
    out[#out + 1] = 1
  else
    out[#out + 1] = 0
  end
end
return out
