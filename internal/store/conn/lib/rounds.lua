-- rounds(held, r, limit) reads which rounds a worker runs: at most limit tasks, but all that it can hold, as {id, light fields...}, in the
-- order of the ids, and the ids in the set that are no round of it any more, because a foreign client has moved the task or it is a dead
-- letter. It writes nothing. r holds name (of the worker), slots (as registered), running (name of the state) and aside (key).
local function rounds(held, r, limit)
  local ids, found, stale = redis.call('SMEMBERS', held), {}, {}
  limit = math.max(limit, (tonumber(r.slots or '') or 0) + MAX_AHEAD)
  table.sort(ids, function(a, b) return (tonumber(a) or 0) < (tonumber(b) or 0) end)
  for _, id in ipairs(ids) do
    if #found == limit then break end
    local t = light(K.task(id))
    local worker, incarnation = t[#t - 6], t[#t - 5]
    if t[1] == r.running and worker == r.name and incarnation ~= '' and redis.call('HEXISTS', r.aside, id) == 0 then
      found[#found + 1] = {id, unpack(t)}
    else
      stale[#stale + 1] = id
    end
  end
  return found, stale
end
