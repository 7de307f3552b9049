-- log_key.lua: the lines are a list of their own beside the hash. log_add returns no fields to write.
local function log_add(key, old, line) redis.call('RPUSH', key .. ':log', line) end
