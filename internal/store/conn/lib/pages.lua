-- paged calls a command for the members of a list, 1000 at a time since unpack has a limit, and returns the sum of the answers.
local function paged(command, key, list)
  local sum = 0
  for i = 1, #list, 1000 do sum = sum + redis.call(command, key, unpack(list, i, math.min(i + 999, #list))) end
  return sum
end
