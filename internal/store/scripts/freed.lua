-- freed reads the tasks of a plan that are to be moved. It changes nothing, but that a plan with which nothing is to be
-- done is taken off the list of those to look at.
--
-- KEYS[1] meta   KEYS[2] plan:<id>   KEYS[3] its tasks to be moved   KEYS[4] draining
-- ARGV[1] id   ARGV[2] rank to begin at   ARGV[3] most tasks   ARGV[4] task key prefix
-- Returns {now, {{id, doomed by or '', '1' if skipped, light fields...}...}, by how many microseconds now is ahead of TIME}. Sent again: the same.
local stamp = now()
local state = redis.call('HGET', KEYS[2], 'state')
local ids = state == 'ready' and redis.call('ZRANGE', KEYS[3], ARGV[2], ARGV[2] + ARGV[3] - 1) or {}
if #ids == 0 and (ARGV[2] == '0' or state ~= 'ready') then redis.call('ZREM', KEYS[4], 'p' .. ARGV[1]) end
local tasks = {}
for i, id in ipairs(ids) do
  local key = ARGV[4] .. id
  local t = redis.pcall('HMGET', key, 'doomed_by', 'skipped', 'state')
  if not t.err and t[3] ~= 'blocked' then
    redis.call('ZREM', KEYS[3], id)
  elseif not t.err then
    tasks[#tasks + 1] = {id, t[1] or '', t[2] or '', unpack(light(key, true))}
  end
end
return {stamp, tasks, wall.ahead}
