-- newest lists tasks of some states, one state after the other, and of each what came into it last first. It writes nothing.
-- KEYS meta; then the set of each state
-- ARGV score, id (of a task that the first of them listed: what comes behind it is meant, also if it has moved since; '' for all), most
-- Returns for each task which of the sets lists it, from 0 on, its id and its score. Fewer than most are all that there are.
local first, found, most = 0, {}, tonumber(A.most)

if A.id ~= '' then
  local key = KEYS[#K + 1]
  first = redis.call('ZCOUNT', key, '(' .. A.score, '+inf')
  local last = first + redis.call('ZCOUNT', key, A.score, A.score)
  while first < last do -- those of one score are in the order of their texts
    local middle = math.floor((first + last) / 2)
    if redis.call('ZREVRANGE', key, middle, middle)[1] >= A.id then first = middle + 1 else last = middle end
  end
end

for k = #K + 1, #KEYS do
  while #found < 3 * most do
    local some = redis.call('ZREVRANGE', KEYS[k], first, first + most - #found / 3 - 1, 'WITHSCORES')
    if #some == 0 then break end
    for i = 1, #some, 2 do
      if string.match(some[i], '^[1-9]%d*$') and #some[i] < 17 then
        local n = #found
        found[n + 1], found[n + 2], found[n + 3] = k - #K - 1, some[i], some[i + 1]
      end
    end
    first = first + #some / 2
  end
  first = 0
end
return found
