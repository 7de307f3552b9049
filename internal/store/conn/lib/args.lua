-- arg is the next argument after those that the header names, args the list that begins there with its length.
local at = #A
local function arg()
  at = at + 1
  return ARGV[at]
end
local function args()
  local list = {}
  for i = 1, tonumber(arg()) do list[i] = arg() end
  return list
end
