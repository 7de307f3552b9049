-- arg is the next argument after those that the header names, args the list that begins there with its length.
local at = #A
local function arg()
  at = at + 1
  return ARGV[at]
end
local function args()
  local first = at + 2
  at = at + 1 + ARGV[at + 1]
  return {unpack(ARGV, first, at)} -- at most some thousands: they pass over the stack of Lua
end
