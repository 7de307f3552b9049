-- What a claim leaves, and who is to know of it.
local full, elsewhere, more = {}, {}, '' -- queues that are; those of them with a place on this node; '1' if there is more for the worker
local wider = '' -- '1' if tasks are due that take more slots than are free

-- call wakes who waits for any of the buckets of a queue in which tasks are due.
local function call(q)
  local lists = {}
  for _, b in ipairs(q.buckets) do
    if head(q, b) then lists[#lists + 1] = b.wake end
  end
  if #lists > 1 and #lists <= 1000 and redis.call('EXISTS', unpack(lists)) == #lists then return end -- as mostly
  for _, list in ipairs(lists) do token(list) end
end

-- spare passes on places that are left of a queue where this worker is done: only the first that became free has woken somebody.
local function spare(q)
  if again or not q.took or room <= 0 or q.here <= 0 or q.fleet <= 0 then return end
  if q.threads then token(q.wake) end
  if limit or q.maxthreads and A.node ~= '' then token(K.wakeNode) end
end

-- rest says what is left of a queue. It wakes another worker for due tasks that others may claim: one that waits for their bucket, for a
-- place in their queue, or for one on this node; none for what is full. It notes a limit, so that the next free place wakes one.
local function rest(q)
  q.short = false
  local can = not gathering and best(q) or nil
  if q.wide then wider = '1' end
  if not (can or foremost(q)) then return spare(q) end
  places(q)
  local fleet, here = q.fleet > 0, can ~= nil and room > 0 and q.here > 0
  if not again then
    if not fleet then redis.call('HSET', K.full, 'q:' .. q.name, '1') end
    if A.node ~= '' and (not here and not q.wide or q.short) then redis.call('HSET', K.full, 'n:' .. A.node, '1') end
    if fleet and (#got > 0 or not here) then
      call(q)
      if q.threads then token(q.wake) end
    end
    if fleet and here and #got > 0 and (limit or q.maxthreads or q.demands) then token(K.wakeNode) end
  end
  if fleet and here then
    more = '1'
  elseif not (fleet and q.wide) or q.short or gathering then
    full[#full + 1] = q.name
    if here then elsewhere[#elsewhere + 1] = q.name end
  end
end
