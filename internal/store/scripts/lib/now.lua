-- now() is the only clock of TDF: Redis TIME, read once in each script.
-- Returns the time as text with six decimals and the whole seconds. The text
-- is built from the two integers, because Lua's tostring keeps four decimals.
local stamped, whole
local function now()
  if not stamped then
    local t = redis.call('TIME')
    stamped, whole = string.format('%d.%06d', tonumber(t[1]), tonumber(t[2])), tonumber(t[1])
  end
  return stamped, whole
end
