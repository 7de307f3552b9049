-- time() is TIME of Redis: seconds since 1970, and microseconds. Tests put another clock in its place.
local function time()
  local t = redis.call('TIME')
  return tonumber(t[1]), tonumber(t[2])
end
