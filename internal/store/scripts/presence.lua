-- presence says that a manager is alive, and refuses a stand-in beside a
-- project's own manager.
--
-- KEYS[1] meta   KEYS[2] managers
-- ARGV[1] instance   ARGV[2] kind ('own' or 'standin')   ARGV[3] name   ARGV[4] seconds after which a
-- silent manager counts as gone   ARGV[5] '1' to refuse while an own manager is alive
-- Returns '' or the name of the own manager that is alive.
local stamp, seconds = now()
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  local at, kind, name = string.match(all[i + 1], '^(%d+) (%S+) (.*)$')
  if not at or seconds - tonumber(at) > tonumber(ARGV[4]) then
    redis.call('HDEL', KEYS[2], all[i])
  elseif ARGV[5] == '1' and kind == 'own' and all[i] ~= ARGV[1] then
    return name
  end
end
redis.call('HSET', KEYS[2], ARGV[1], string.format('%d', seconds) .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
return ''
