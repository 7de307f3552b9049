-- epoch opens a new epoch if Redis is behind a client's history or has refused a client: claims and registrations before it are void, and
-- ids continue beyond all that may have been given out. Otherwise it confirms the life of Redis, unless that is done: ids continue beyond
-- those that may have been given out since a client last looked. It is the only script that does not compare the history itself.
-- KEYS meta, taskID, lease, epochs, handling
-- ARGV epoch, seq, id (that the caller has seen), gap (how many ids are left out), life (the caller has seen), confirms ('1' if it may)
-- Returns {0, epoch, seq} if Redis is behind nobody, and nothing changes; else {1, epoch, seq, how many changes are gone
-- at least, last id before, last id left out}, or {2, ...} for a life that is confirmed. Sent again: the same, or {0, ...} after 2.
local m = redis.call('HMGET', K.meta, 'epoch', 'seq', 'witness', 'adopted', 'lives', 'unconfirmed', 'clock')
wall.mark = m[7]
local epoch, seq = tonumber(m[1] or '') or 1, tonumber(m[2] or '') or 0
local e, s, id = tonumber(A.epoch), tonumber(A.seq), tonumber(A.id) -- the most that anybody has seen
local we, ws, wid, gone = string.match(m[3] or '', '^(%d+) (%d+) (%d+) (%d+)$')
local missed = we and tonumber(we) >= epoch -- who was refused knows, also if as much has been counted since
local function text(n) return string.format('%d', n) end
if we then
  if tonumber(we) > e or tonumber(we) == e and tonumber(ws) > s then e, s = tonumber(we), tonumber(ws) end
  id = math.max(id, tonumber(wid))
end
local behind = missed or e > epoch or e == epoch and s > seq
if not behind then
  if we then redis.call('HDEL', K.meta, 'witness') end
  if not m[6] or A.confirms ~= '1' then
    local record = redis.call('HGET', K.epochs, text(epoch)) or ''
    local was, at, lost, from, to = string.match(record, '^%S+ (%d+) (%d+) (%d+) (%d+) (%d+)')
    if was == A.epoch and at == A.seq then return {1, epoch, seq, tonumber(lost), tonumber(from), tonumber(to)} end
    return {0, epoch, seq}
  end
end

local wrong = wrongtype('string', {K.taskID}) or wrongtype('zset', {K.lease}) or wrongtype('hash', {K.epochs, K.handling})
if wrong then return wrong end
local stamp = now()
local from = tonumber(redis.call('GET', K.taskID) or '') or 0
local lost = behind and math.max(tonumber(gone or '') or 0, s - seq, 1) or 0 -- one, the opening of the epoch, if no other is known
-- Each task that was opened is a change, so no more ids than changes are gone.
local to = math.max(math.max(from, id) + tonumber(A.gap), from + lost)
-- Ids that were given out in this life, before anybody said that it is sound, may have been given out before.
local name, number, start = string.match(m[5] or '', '(%w+)%.(%d+):(%d+)$')
local born = tonumber(m[6] or '')
if not born and number == '1' and start == '0' and A.life ~= '' and A.life ~= name .. '.1' then born = 0 end -- Redis came back empty
redis.call('SET', K.taskID, text(to))
-- There is nothing to be found among the ids left out.
if (tonumber(m[4] or '') or 0) == from then redis.call('HSET', K.meta, 'adopted', text(to)) end
redis.call('HDEL', K.meta, 'witness', 'unconfirmed')
local record = table.concat({stamp, A.epoch, A.seq, text(lost), text(from), text(to), text(math.min(born or from, from))}, ' ')
if not behind then
  redis.call('HSET', K.epochs, text(epoch) .. '.' .. (number or '0'), record)
  redis.call('HSET', K.meta, 'seq', text(seq + 1), 'clock', noted(true))
  return {2, epoch, seq + 1, 0, from, to}
end
redis.call('HSET', K.epochs, text(e + 1), record)
-- Every session is over, but what it runs may run on until it hears of that: a lease from now at the longest.
for _, worker in ipairs(redis.call('ZRANGE', K.lease, 0, -1)) do redis.call('ZADD', K.lease, stamp, worker) end
redis.call('HSET', K.meta, 'epoch', text(e + 1), 'seq', text(math.max(seq, s)), 'clock', noted(true))
redis.call('DEL', K.handling) -- so managers must ask anew for what they handle
redis.call('PUBLISH', K.rules, '1')
return {1, e + 1, math.max(seq, s), lost, from, to}
