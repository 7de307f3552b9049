-- open.lua: opens any number of tasks.
-- KEYS: 1 prefix of task hashes, 2 task_id, 3 open, 4..6 deadline indices, 7.. ready buckets
-- ARGV: 1 namespace, then 13 values a task: program source input start_after end_before timeout max_fails
--       max_timeouts queue env labels priority and the place of its bucket in KEYS
-- Returns: the ids, in order.
local now, ids = clock(), {}
for i = 2, #ARGV, 13 do
  local id = tostring(redis.call('INCR', KEYS[2]))
  local key, start_after, end_before = KEYS[1] .. id, ARGV[i + 3], ARGV[i + 4]
  local extra = {'0:open', now.stamp, 'rev', '1'}
  for j, name in ipairs({'queue', 'env', 'labels', 'priority'}) do
    if ARGV[i + 7 + j] ~= '' then
      extra[#extra + 1] = name
      extra[#extra + 1] = ARGV[i + 7 + j]
    end
  end
  redis.call('HSET', key, 'program', ARGV[i], 'source', ARGV[i + 1], 'input', ARGV[i + 2], 'id', id,
    'start_after', start_after, 'end_before', end_before, 'timeout', ARGV[i + 5], 'max_fails', ARGV[i + 6],
    'max_timeouts', ARGV[i + 7], 'state', 'open', 'round', '0', 'fails', '0', 'timeouts', '0', 'log', '',
    'namespace', ARGV[1], unpack(extra))
  redis.call('ZADD', KEYS[3], start_after, id)
  ready_put(KEYS[tonumber(ARGV[i + 12])], start_after, id)
  due_open(4, id, end_before)
  ids[#ids + 1] = id
end
return ids
