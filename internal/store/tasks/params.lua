-- params gives tasks that wait other parameters, each task on its own.
-- KEYS meta; then the tasks
-- ARGV params (a JSON object, or '' for none), dry ('1': change nothing), writer (as in logs), text (for the log, or '')
-- Returns for each task: 1 written, 2 it has them already, -3 the hash is missing or damaged, -7 it does not wait; and its state.
local changed = 0

local function change(key)
  local t = redis.pcall('HMGET', key, 'state', 'rev', 'params', 'log')
  if t.err or not t[1] then return -3, '' end
  if (t[3] or '') == A.params then return 2, t[1] end -- also if it has begun since, for a call that is sent again
  if t[1] ~= 'open' and t[1] ~= 'blocked' then return -7, t[1] end
  if A.dry == '1' then return 1, t[1] end
  local v = {'rev', string.format('%d', following(t[2]))}
  if A.text ~= '' then
    local _, seconds = now()
    v[3], v[4] = 'log', append(t[4], datetime(seconds) .. ' - ' .. A.writer .. ' ' .. A.text)
  end
  if A.params ~= '' then v[#v + 1], v[#v + 2] = 'params', A.params end
  redis.call('HSET', key, unpack(v))
  if A.params == '' then redis.call('HDEL', key, 'params') end
  changed = changed + 1
  return 1, t[1]
end

local answer = {}
for i = #K + 1, #KEYS do answer[#answer + 1], answer[#answer + 2] = change(KEYS[i]) end
if changed > 0 then counted(changed) end
return answer
