--[[lib slots]]
-- unhold takes a round out of all that counts it. It returns 1 if the worker's set had it, else 0.
local function unhold(task, round, id)
  local t = redis.pcall('HMGET', task, round .. ':worker', round .. ':node', 'queue', round .. ':resources')
  if t.err or not t[1] then return 0 end
  local had = redis.pcall('SISMEMBER', K.held(t[1]), id)
  vacate(id, t[1], t[2] or '', t[3] or '', t[4])
  release()
  return had == 1 and 1 or 0
end
