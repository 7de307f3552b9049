-- remind wakes a waiter of each bucket in which a task has been due for a while and nobody has come for it: who was woken may be dead, and
-- who knew when it starts may work at something else.
-- KEYS meta; then pairs: ready, wake
-- ARGV late (for how many seconds such a task has been due at least)
-- Returns the seconds until the next task will have been due for so long, '' if none is known.
local clock, next = tonumber((now())), math.huge
for k = #K + 1, #KEYS, 2 do
  local head = redis.pcall('ZRANGE', KEYS[k], 0, 0, 'WITHSCORES')
  local left = (tonumber(head[2] or '') or math.huge) + A.late - clock
  if left > 0 then next = math.min(next, left) else token(KEYS[k + 1]) end
end
return next < math.huge and string.format('%.6f', next) or ''
