-- unhold(prefix, task, round, id) takes an id out of the set of what the worker
-- of that round holds, and returns 1 if it was there, else 0. Which worker that is
-- becomes known here only, so the key of its set is made from the declared
-- prefix; '' leaves the set alone. A set of another type is no reason to fail.
local function unhold(prefix, task, round, id)
  local worker = prefix ~= '' and redis.pcall('HGET', task, round .. ':worker')
  if type(worker) ~= 'string' then return 0 end
  local gone = redis.pcall('SREM', prefix .. worker, id)
  return type(gone) == 'number' and gone or 0
end
