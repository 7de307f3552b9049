-- results reads what the tasks that a task needs have brought. It writes nothing.
-- KEYS meta
-- ARGV: the ids
-- Returns {{id, end or '', '1' if it was cut, result, '1' if a retry has not ended, '1' if it was skipped}...}: of a task that
-- was retried, those of the last that succeeded, or else of the last that ended.

-- brought reads the result of a round, the first of which was read with the task: most tasks end in that one.
local function brought(key, round, result, output, bytes)
  if round ~= '0' then
    result, output, bytes = unpack(redis.call('HMGET', key, round .. ':result', round .. ':output', round .. ':output_bytes'), 1, 3)
  end
  if result then return result, '' end
  output = output or ''
  return string.sub(output, 1, string.sub(output, -1) == '\n' and -2 or -1), bytes and '1' or ''
end

local answer = {}
for i, id in ipairs(ARGV) do
  local best = {id, '', '', '', '', ''}
  for _ = 1, 100 do
    local key = K.task(id)
    local t = redis.pcall('HMGET', key, 'state', 'round', 'retried_by', '0:result', '0:output', '0:output_bytes', 'skipped')
    if t.err then break end
    local ended = ending(t[1], t[1] == 'archived' and redis.call('HGET', key, 'outcome'))
    if ended and (best[2] ~= 'succeeded' or ended == 'succeeded') then
      local text, cut = brought(key, t[2], t[4], t[5], t[6])
      best = {id, ended, cut, text, '', t[7] or ''}
    end
    id = t[3] or ''
    if id == '' then
      best[5] = ended and '' or '1'
      break
    end
  end
  answer[i] = best
end
return answer
