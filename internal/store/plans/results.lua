-- results reads what the tasks that a task needs have brought. It writes nothing.
--
-- KEYS meta
-- ARGV: the ids
-- Returns {{id, end or '', '1' if it was cut, result, '1' if a retry has not ended, '1' if it was skipped}...}: of a task that
-- was retried, those of the last that succeeded, or else of the last that ended.

-- brought reads the result of a round, the first of which was read with the task: most tasks end in that one.
local function brought(key, round, result, output, bytes)
  if round ~= '0' then
    local r = redis.call('HMGET', key, round .. ':result', round .. ':output', round .. ':output_bytes')
    result, output, bytes = r[1], r[2], r[3]
  end
  if result then return result, '' end
  output = output or ''
  if string.sub(output, -1) == '\n' then output = string.sub(output, 1, -2) end
  return output, bytes and '1' or ''
end

local answer = {}
for i = 1, #ARGV do
  local id, best = ARGV[i], {ARGV[i], '', '', '', '', ''}
  for _ = 1, 100 do
    local key = K.task(id)
    local t = redis.pcall('HMGET', key, 'state', 'round', 'retried_by', '0:result', '0:output', '0:output_bytes', 'skipped')
    if t.err then break end
    local ended = ending(t[1], t[1] == 'archived' and redis.call('HGET', key, 'outcome'))
    if ended and (best[2] ~= 'succeeded' or ended == 'succeeded') then
      local text, cut = brought(key, t[2], t[4], t[5], t[6])
      best = {id, ended, cut, text, '', t[7] or ''}
    end
    if not t[3] or t[3] == '' then
      best[5] = ended and '' or '1'
      break
    end
    id = t[3]
  end
  answer[i] = best
end
return answer
