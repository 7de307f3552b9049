local sessions = {}
local function session(worker)
  local doc = sessions[worker] or redis.pcall('HMGET', K.workerDoc(worker), 'incarnation', 'state', 'epoch', 'halted')
  sessions[worker] = doc
  return doc
end

-- outrun reports whether a claim comes too late: by is it, or one of the same worker over HTTP, whose claims are NAME-NUMBER, after it.
local function outrun(request, by)
  local name, number = string.match(request, '^(.*%-)(%d+)$')
  local other, newer = string.match(by or '', '^(.*%-)(%d+)$')
  return request == by or name and name == other and tonumber(newer) > tonumber(number)
end
