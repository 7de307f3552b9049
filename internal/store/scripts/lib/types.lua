-- wrongtype(kind, list of KEYS indices) is an error reply if one of these keys
-- holds another type, else nil. Redis does not undo the writes of a script that
-- fails in the middle, so a script asks before its first write about every key
-- that it has not read by then. The error names the place in KEYS, not the key.
local typed = {}
local function wrongtype(kind, indices)
  for _, i in ipairs(indices) do
    if not typed[i] then
      local is = redis.call('TYPE', KEYS[i])
      is = is.ok or is
      if is ~= 'none' and is ~= kind then
        return redis.error_reply('WRONGTYPE KEYS[' .. i .. '] of the script is a ' .. is .. ', want a ' .. kind)
      end
      typed[i] = true
    end
  end
end
