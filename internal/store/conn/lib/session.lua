local sessions = {}
local function session(worker)
  local doc = sessions[worker] or redis.pcall('HMGET', K.workerDoc(worker), 'incarnation', 'state', 'epoch', 'halted')
  sessions[worker] = doc
  return doc
end
