-- workers reads what the registry knows of some workers. It writes nothing.
-- KEYS meta, lease; then pairs: workerDoc, held
-- ARGV: their names
-- Returns {now, {{heartbeat or '', {held id...}, {field, value...}}...}}, without fields where nobody registered.
local stamp, all = now(), {}
for i, name in ipairs(ARGV) do
  local doc = redis.pcall('HGETALL', KEYS[#K + 2 * i - 1])
  local held = redis.pcall('SMEMBERS', KEYS[#K + 2 * i])
  all[i] = {redis.call('ZSCORE', K.lease, name) or '', held.err and {} or held, doc.err and {} or doc}
end
return {stamp, all}
