-- arg is the next argument after those that the header names, args the list that begins there with its length.
local at = #A
local function arg()
  at = at + 1
  return ARGV[at]
end
local function args()
  local list, first = {}, at + 1
  at = first + ARGV[first]
  for i = first + 1, at do list[i - first] = ARGV[i] end -- unpack has a limit
  return list
end
