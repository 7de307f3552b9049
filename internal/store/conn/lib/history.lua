-- The history of a namespace: `epoch` and `seq` in meta, and the stream of events. Each caller says as its last argument how far it has
-- seen it, and in which life of Redis (arrive.lua): "epoch seq id life". A Redis that is not that far has lost what it acknowledged, after
-- a failover or a restored backup: then the script does nothing. The last key is the stream. Both are taken off for the script.
local stream, known = table.remove(KEYS), table.remove(ARGV)
local past = redis.call('HMGET', K.meta, 'epoch', 'seq', 'events', 'witness', 'lives', 'flushing', 'clock', 'unconfirmed'--[[meta]])
local epoch, seq, cap = tonumber(past[1] or '') or 1, tonumber(past[2] or '') or 0, tonumber(past[3] or '') or 10000
local changes, entries, latest = 0, {}, {}
local along = {} -- fields of meta, and their values, that are written with the number of changes
local lives = past[5] or ''
local alive = string.match(lives, '(%w+%.%d+):%d+$') or '' -- this life
wall.mark = past[7]

-- missed is how many changes are gone, at least, of those that were seen in a life: because the count is behind, a life that came after
-- that one began behind, or nobody knows where those after it began: only the newest are kept.
local function missed(s, life)
  local gone = s - seq
  if life == alive or life == '' or lives == '' then return gone end
  local _, last = string.find(' ' .. lives, ' ' .. life .. ':', 1, true)
  if not last and s > 0 then gone = math.max(gone, 1) end
  for start in string.gmatch(last and string.sub(lives, last) or lives, '%.%d+:(%d+)') do gone = math.max(gone, s - tonumber(start)) end
  return gone
end

-- following is the revision after another one. Each epoch begins at another thousand million, so that what was decided before changes were
-- lost never fits what became of a task since.
local function following(rev)
  return math.max((tonumber(rev or '') or 0) + 1, (epoch - 1) * 1000000000)
end

-- counted says that something changed that must not be lost, and is no move of a task.
local function counted(n) changes = changes + n end

-- happened says that a task went from one state to another ('' for none), and who brought it about. Tasks of a call that fared alike share
-- an entry, unless that would put a later step of a task before an earlier one.
local function happened(id, round, from, to, event, actor, by)
  changes = changes + 1
  if cap <= 0 then return end
  local at, e = #entries, nil
  while at > 0 do
    e = entries[at]
    if e[4] == to and e[2] == from and e[6] == event and e[8] == actor and e[10] == by then break end
    at = at - 1
  end
  if at == 0 or #e.ids == 500 or (latest[id] or 0) > at then
    at = #entries + 1
    e = {ids = {}, rounds = {}, 'from', from, 'to', to, 'event', event, 'actor', actor, 'by', by}
    entries[at] = e
  end
  local n = #e.ids + 1
  e.ids[n], e.rounds[n], latest[id] = id, round, at
end

-- refused notes who is ahead of us, and by how much, for the server that opens the next epoch, and answers.
local function refused(e, s, id, gone)
  local we, ws, wid, wgone = string.match(past[4] or '', '^(%d+) (%d+) (%d+) (%d+)$')
  we, ws, wid, wgone = tonumber(we or 0), tonumber(ws or 0), tonumber(wid or 0), tonumber(wgone or 0)
  if we > e or we == e and ws > s then e, s = we, ws end
  redis.pcall('HSET', K.meta, 'witness', string.format('%d %d %d %d', e, s, math.max(wid, id), math.max(wgone, gone)))
  return {'behind', epoch, seq}
end

-- write makes what happened part of the history. The id of an entry is the number of the last change in it, so that neither a clock nor a
-- repetition matters; those before it have the numbers before that. Changes without an event come last.
local function write()
  local at, last, oldest = #entries > 0 and now(), seq, string.format('%d', math.max(seq + changes - cap + 1, 0))
  for _, e in ipairs(entries) do
    last = last + #e.ids
    redis.pcall('XADD', stream, 'MINID', '~', oldest, string.format('%d-0', last), 'at', at,
      'id', table.concat(e.ids, ' '), 'round', table.concat(e.rounds, ' '), unpack(e))
  end
  seq = seq + changes
  local mark, n = noted(true), #along
  if mark then along[n + 1], along[n + 2] = 'clock', mark end
  redis.call('HSET', K.meta, 'seq', string.format('%d', seq), unpack(along))
end

-- flushed reports whether the namespace is being flushed: what is written now would be deleted in part.
local function flushed()
  local till = past[6] and tonumber(string.match(past[6], '^%w+ (%S+)$') or '')
  return till and tonumber((now())) < till
end

-- sealed calls a script, with whether it must write nothing, and answers {epoch, seq, who is ahead or '', this life, answer}; or {'behind',
-- epoch, seq}, {'flushing'} or {'unconfirmed'}, and nothing changes. A script that flushes passes meanwhile. One that writes keeps the
-- clock fresh even if it changes nothing that counts. One that gives out ids waits until a server has confirmed the life of Redis.
local function sealed(script, flushes, writes, gives)
  if past[6] and not flushes and flushed() then return {'flushing'} end
  local e, s, id, life = string.match(known, '^(%d+) (%d+) (%d+) ?(%S*)$')
  e, s = tonumber(e), tonumber(s)
  local gone = epoch == e and missed(s, life) or s - seq
  if epoch < e or epoch == e and gone > 0 then return refused(e, s, tonumber(id), gone) end
  if past[8] and gives then return {'unconfirmed'} end
  local answer = script(not writes)
  if type(answer) == 'table' and answer.err then return answer end
  if changes > 0 then
    write()
  elseif writes and noted() then
    redis.pcall('HSET', K.meta, 'clock', noted())
  end
  return {epoch, seq, past[4] or past[8] or '', alive, answer}
end
