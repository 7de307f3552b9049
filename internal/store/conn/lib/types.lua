-- wrongtype(kind, keys) is an error reply if one of these keys holds another type, else nil. Redis does not undo what a failed script
-- wrote, so a script asks before its first write about every key that it has not read by then. The error says only what begins the key.
local typed = {}
local function wrongtype(kind, keys)
  for _, key in ipairs(keys) do
    if not typed[key] then
      local is = redis.call('TYPE', key)
      is = is.ok or is
      if is ~= 'none' and is ~= kind then
        return redis.error_reply('WRONGTYPE ' .. string.match(key, '^[^:]*', #namespace + 1) .. ' is a ' .. is .. ', want a ' .. kind)
      end
      typed[key] = true
    end
  end
end
