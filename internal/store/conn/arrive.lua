-- arrive notes that a life of Redis has begun: its process was started, or a replica took over. From then on what was seen in a former life
-- can be compared with where this one began, however far it has come since. Who connects calls it before anything else. It does not ask for
-- the history itself. Where anything was counted before, no id is given out until a server has confirmed the life (epoch.lua):
-- `unconfirmed` is the newest id of the moment, as far as servers and our own clients know of it: not each login may read task_id.
-- KEYS meta
-- ARGV life (what names it: the beginning of its replication id), most (lives to keep),
--   replica ('1' for one, which has the life of its master and must refuse to write)
-- Returns 1 if this was the first to arrive, else 0.
local m = redis.call('HMGET', K.meta, 'seq', 'lives', 'adopted')
local lives, newest, count = {}, '', 0
for name, n, start in string.gmatch(m[2] or '', '(%w+)%.(%d+):(%d+)') do
  lives[#lives + 1] = name .. '.' .. n .. ':' .. start
  newest, count = name, tonumber(n)
end
-- Who may only read finds a life that is known, and changes nothing.
if newest == A.life and A.replica ~= '1' then return 0 end
redis.call('HDEL', K.meta, '') -- passes without memory, and lets what follows pass
if newest == A.life then return 0 end
lives[#lives + 1] = string.format('%s.%d:%d', A.life, count + 1, tonumber(m[1] or '') or 0)
redis.call('HSET', K.meta, 'lives', table.concat(lives, ' ', math.max(1, #lives - tonumber(A.most) + 1)))
if m[1] then redis.call('HSET', K.meta, 'unconfirmed', m[3] or '0') end
return 1
