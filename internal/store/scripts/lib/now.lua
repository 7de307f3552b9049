-- now() is the only clock of TDF: Redis TIME, read once in each script.
-- Returns the time as text with six decimals and the whole seconds. The text
-- is built from the two integers, because Lua's tostring keeps four decimals.
local function now()
  local t = redis.call('TIME')
  return string.format('%d.%06d', tonumber(t[1]), tonumber(t[2])), tonumber(t[1])
end
