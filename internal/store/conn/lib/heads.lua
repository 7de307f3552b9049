-- Heads: which due task of a queue goes first. It is the one with the highest rank, which is the priority of its bucket raised by one for
-- each `aging` seconds it has waited, then the older one (lifo, which has no aging: the newer). Nothing is written but that tasks leave
-- buckets, and if dry they are only passed over.
local stamp, clock -- the moment of the claim
local starts = math.huge -- when the next task starts

-- waited is how many points of priority a task has got. Times are whole microseconds: half of one makes up for what doubles lack.
local function waited(q, score)
  return q.aging > 0 and math.floor((clock - score + 0.0000005) / q.aging) or 0
end

-- sweep takes those out of a bucket that were passed, all at once.
local function sweep(b)
  if #b.gone == 0 then return end
  if dry then b.from = b.from + #b.gone else redis.call('ZREM', b.ready, unpack(b.gone)) end
  b.gone = {}
end

-- fill reads on, more each time: most claims take one task, and look whether there is another. From a queue that is lifo they are taken
-- from the newest that is due. What is not open any more, a foreign client has claimed.
local function fill(q, b)
  sweep(b)
  b.size, b.at = math.min(32, 2 * b.size), 1
  if q.lifo then
    b.buf = redis.call('ZREVRANGEBYSCORE', b.ready, stamp, '-inf', 'WITHSCORES', 'LIMIT', b.from, b.size)
    if #b.buf == 0 and b.from == 0 then b.buf = redis.call('ZRANGE', b.ready, 0, 0, 'WITHSCORES') end
  else
    b.buf = redis.call('ZRANGE', b.ready, b.from, b.from + b.size - 1, 'WITHSCORES')
  end
  local ids = {}
  for i = 1, #b.buf, 2 do ids[#ids + 1] = string.sub(b.buf[i], 2) end
  b.last, b.ids, b.open = #b.buf, ids, #ids > 0 and redis.call('ZMSCORE', K.open, unpack(ids))
end

-- head puts the next due task of a bucket into b.member, b.score and b.rank, and says whether there is one.
local function head(q, b)
  if b.over then return false end
  if b.at > b.last then fill(q, b) end
  b.member = b.buf[b.at]
  b.score = tonumber(b.buf[b.at + 1] or '') or math.huge -- the embedded Redis writes what its own Lua cannot read: 4e+9
  if not b.member or b.score > clock then
    b.over = true
    starts = math.min(starts, b.score)
    return false
  end
  b.rank = b.priority + waited(q, b.score)
  return true
end

local function precedes(q, x, y)
  if x.rank ~= y.rank then return x.rank > y.rank end
  if x.score ~= y.score then return (x.score > y.score) == q.lifo end
  return (x.member > y.member) == q.lifo
end

-- foremost is the bucket whose head goes first, leaving out those in `but` if given; nil for none.
local function foremost(q, but)
  local first
  for _, b in ipairs(q.buckets) do
    if not (but and but[b]) and head(q, b) and (not first or precedes(q, b, first)) then first = b end
  end
  return first
end
