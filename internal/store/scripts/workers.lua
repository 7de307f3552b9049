-- workers reads what the registry knows of some workers. It writes nothing.
--
-- KEYS[1] meta   KEYS[2] lease   KEYS[3..] pairs: worker:<name>, held:<name>
-- ARGV their names
-- Returns {now, {{heartbeat or '', {held id...}, {field, value...}}...}}, without fields where nobody registered.
local stamp = now()
local all = {}
for i, name in ipairs(ARGV) do
  local doc = redis.pcall('HGETALL', KEYS[1 + 2 * i])
  local held = redis.pcall('SMEMBERS', KEYS[2 + 2 * i])
  all[i] = {redis.call('ZSCORE', KEYS[2], name) or '', held.err and {} or held, doc.err and {} or doc}
end
return {stamp, all}
