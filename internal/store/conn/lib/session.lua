local sessions = {}
local function session(worker)
  local doc = sessions[worker] or redis.pcall('HMGET', K.workerDoc(worker), 'incarnation', 'state', 'epoch', 'halted')
  sessions[worker] = doc
  return doc
end

-- outrun reports whether by is a later claim of the same worker over HTTP, whose claims are NAME-NUMBER.
local function outrun(request, by)
  local name, number = string.match(request, '^(.*%-)(%d+)$')
  local other, newer = string.match(by or '', '^(.*%-)(%d+)$')
  return name and name == other and tonumber(newer) > tonumber(number)
end
