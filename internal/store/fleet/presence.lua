-- presence says that a manager is alive, and refuses a stand-in beside a project's own manager.
-- KEYS meta, managers
-- ARGV instance, kind ('own' or 'standin'), name, silence (seconds after which a manager counts as gone),
--   refuses ('1' to refuse while an own manager is alive)
-- Returns '' or the name of the own manager that is alive.
local _, seconds = now()
local all = redis.call('HGETALL', K.managers)
for i = 1, #all, 2 do
  local at, kind, name = string.match(all[i + 1], '^(%d+) (%S+) (.*)$')
  if not at or seconds - tonumber(at) > tonumber(A.silence) then
    redis.call('HDEL', K.managers, all[i])
  elseif A.refuses == '1' and kind == 'own' and all[i] ~= A.instance then
    return name
  end
end
redis.call('HSET', K.managers, A.instance, string.format('%d', seconds) .. ' ' .. A.kind .. ' ' .. A.name)
return ''
