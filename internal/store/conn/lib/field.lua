-- put writes a field of a task, or takes it away for '', raises its revision, and appends A.text, if there is any, to its log. Nothing
-- changes in a dry run.
local changed = 0
local function put(key, rev, log, field, text)
  if A.dry == '1' then return end
  local v = {'rev', string.format('%d', following(rev))}
  if A.text ~= '' then
    local _, seconds = now()
    v[3], v[4] = 'log', append(log, datetime(seconds) .. ' - ' .. A.writer .. ' ' .. A.text)
  end
  if text ~= '' then v[#v + 1], v[#v + 2] = field, text end
  redis.call('HSET', key, unpack(v))
  if text == '' then redis.call('HDEL', key, field) end
  changed = changed + 1
end

-- each has change look at one task after the other, and is what it returned of each: a code and the state.
local function each(change)
  local answer = {}
  for i = #K + 1, #KEYS do answer[#answer + 1], answer[#answer + 2] = change(KEYS[i]) end
  if changed > 0 then counted(changed) end
  return answer
end
