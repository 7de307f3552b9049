-- heartbeat is the heartbeat object of Disbatch: a JSON text with the moment, the process and its queues, themselves a JSON text.
local function heartbeat(s, pid, queues)
  return '{"datetime":"' .. string.gsub(datetime(s), ' ', 'T') .. 'Z","pid":' .. pid .. ',"queues":' .. queues .. '}'
end
