-- heads(clock, stamp, dry) finds out which due task of a queue goes first: the one with the
-- highest rank, which is the priority of its bucket raised by one for each `aging` seconds it
-- has waited, then the older one (lifo, which has no aging: the newer). A bucket b holds ready (its key) and
-- priority, its queue q lifo and aging. It writes nothing but that tasks leave buckets, and if dry they are only
-- passed over. What is not in the set of open tasks any more, because a foreign client has claimed it, is `taken`.
local function heads(clock, stamp, dry)
  local h = {next = math.huge} -- when the next task starts

  -- waited is how many points of priority a task has got by waiting. Times are
  -- whole microseconds, so half of one makes up for what the doubles lack.
  local function waited(q, score)
    return q.aging > 0 and math.floor((clock - score + 0.0000005) / q.aging) or 0
  end

  -- leave takes those out of a bucket that were passed, all at once.
  local function leave(b)
    if b.gone and #b.gone > 0 then
      if dry then
        b.from = (b.from or 0) + #b.gone
      else
        redis.call('ZREM', b.ready, unpack(b.gone))
      end
    end
    b.gone = {}
  end

  -- fill reads on, more each time: most claims take one task, and look whether there is another. From a queue that is lifo
  -- they are taken from the newest that is due.
  local function fill(q, b)
    leave(b)
    local from = b.from or 0
    b.size = math.min(32, 2 * (b.size or 1))
    b.at = 1
    if q.lifo then
      b.buf = redis.call('ZREVRANGEBYSCORE', b.ready, stamp, '-inf', 'WITHSCORES', 'LIMIT', from, b.size)
      if #b.buf == 0 and from == 0 then b.buf = redis.call('ZRANGE', b.ready, 0, 0, 'WITHSCORES') end
    else
      b.buf = redis.call('ZRANGE', b.ready, from, from + b.size - 1, 'WITHSCORES')
    end
    local ids = {}
    for i = 1, #b.buf, 2 do ids[#ids + 1] = string.sub(b.buf[i], 2) end
    b.open = #ids > 0 and redis.call('ZMSCORE', K.open, unpack(ids)) or {}
  end

  -- head puts the next due task of a bucket into b.member, b.score and b.rank, and
  -- says whether there is one.
  local function head(q, b)
    if b.over then return false end
    if not b.buf or b.at > #b.buf then fill(q, b) end
    b.member = b.buf[b.at]
    b.score = tonumber(b.buf[b.at + 1] or '') or math.huge -- the embedded Redis writes what its own Lua cannot read: 4e+9
    if not b.member or b.score > clock then
      b.over = true
      h.next = math.min(h.next, b.score)
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
  h.waited, h.precedes = waited, precedes

  -- waiting are the buckets of a queue that have a due task.
  function h.waiting(q)
    local found = {}
    for _, b in ipairs(q.buckets) do
      if head(q, b) then found[#found + 1] = b end
    end
    return found
  end

  -- due says whether a queue has a due task.
  function h.due(q)
    local any = false
    for _, b in ipairs(q.buckets) do any = head(q, b) or any end
    return any
  end

  -- best is the bucket whose head goes first, leaving out those in `but` if given; nil for none.
  function h.best(q, but)
    local first
    for _, b in ipairs(q.buckets) do
      if not (but and but[b]) and head(q, b) and (not first or precedes(q, b, first)) then first = b end
    end
    return first
  end

  -- pass takes the head of a bucket out of it and returns it, and whether it is taken. It is gone at the next
  -- look beyond what was read, or by sweep.
  function h.pass(b)
    local taken = not b.open[(b.at + 1) / 2]
    b.at = b.at + 2
    b.gone[#b.gone + 1] = b.member
    return b.member, taken
  end

  -- back puts back what was passed last.
  function h.back(b)
    b.at = b.at - 2
    b.gone[#b.gone] = nil
  end

  -- sweep takes out of all buckets of a queue what was passed.
  function h.sweep(q)
    for _, b in ipairs(q.buckets) do leave(b) end
  end

  return h
end
