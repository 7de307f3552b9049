-- log_field.lua: the lines are the hash field `log`, joined by newlines. log_add returns the fields to write.
local function log_add(key, old, line) return 'log', old == '' and line or old .. '\n' .. line end
