-- freed reads the tasks of a plan that servers must move, as far as its window has room; of one that a job before it has cancelled, all.
-- It changes one thing: a plan without such work leaves the list `draining`.
-- KEYS meta, plan, freed, draining
-- ARGV id, first (rank to begin at), most (tasks)
-- Returns {now, {{id, doomed by (a task, or j and a job) or '', '1' if skipped, light fields...}...}, microseconds that now is ahead of TIME}. Sent again: the same.
local stamp, tasks = now(), {}
local of = redis.call('HMGET', K.plan, 'state', 'doomed_by')
local doomed = of[1] == 'cancelled' and of[2]
local most = doomed and tonumber(A.most) or of[1] == 'ready' and math.min(tonumber(A.most), room(A.id)) or 0
local ids = most > 0 and redis.call('ZRANGE', K.freed, A.first, A.first + most - 1) or {}
if #ids == 0 and (A.first == '0' or most <= 0) then redis.call('ZREM', K.draining, 'p' .. A.id) end
for _, id in ipairs(ids) do
  local key = K.task(id)
  local t = redis.pcall('HMGET', key, 'doomed_by', 'skipped', 'state')
  if not t.err and t[3] ~= 'blocked' then
    redis.call('ZREM', K.freed, id)
  elseif not t.err then
    tasks[#tasks + 1] = {id, doomed or t[1] or '', t[2] or '', unpack(light(key, true))}
  end
end
return {stamp, tasks, wall.ahead}
