-- results reads what the tasks that a task needs have brought. It writes nothing.
--
-- KEYS[1] meta
-- ARGV[1] task key prefix   then the ids
-- Returns {{id, end or '', '1' if it was cut, result}...}: of a task that was retried, those of the last that succeeded, or else
-- of the last that ended.
local answer = {}
for i = 2, #ARGV do
  local id, best = ARGV[i], {ARGV[i], '', '', ''}
  for _ = 1, 100 do
    local key = ARGV[1] .. id
    local t = redis.pcall('HMGET', key, 'state', 'outcome', 'round', 'retried_by')
    if t.err then break end
    local ended = ending(t[1], t[2])
    if ended and (best[2] == '' or best[2] ~= 'succeeded' or ended == 'succeeded') then
      local r = redis.call('HMGET', key, t[3] .. ':result', t[3] .. ':output', t[3] .. ':output_bytes')
      local output = string.gsub(r[2] or '', '\n$', '')
      best = {id, ended, not r[1] and r[3] and '1' or '', r[1] or output}
    end
    if not t[4] or t[4] == '' then break end
    id = t[4]
  end
  answer[#answer + 1] = best
end
return answer
