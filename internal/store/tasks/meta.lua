-- meta sets and removes attributes of tasks, each task on its own and each name on its own: what others have set of other names stays.
-- KEYS meta; then the tasks
-- ARGV state, round, claim (the task must be in, or '': by no worker), most (names that a task may have), dry ('1': change nothing), writer
--   (as in logs), text (for the log, or ''); then the number of names and texts, and these in turn: without a text the name is removed
-- Returns for each task: 1 written, 2 it has them already, -1 stale claim, -3 the hash is missing or damaged, -6 too many names; and its
--   state after that.
local sets = args()

-- parsed is the object of an attribute field, or nil if it is damaged.
local function parsed(text)
  if not text or text == '' then return {} end
  local ok, object = pcall(cjson.decode, text)
  if not ok or type(object) ~= 'table' then return end
  for name, value in pairs(object) do
    if type(name) ~= 'string' or type(value) ~= 'string' then return end
  end
  return object
end

-- written is the field for such an object: the names sorted, slashes as they are.
local function written(object)
  local names, all = {}, {}
  for name in pairs(object) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do all[i] = string.gsub(cjson.encode(name) .. ':' .. cjson.encode(object[name]), '\\/', '/') end
  return #names, '{' .. table.concat(all, ',') .. '}'
end

return each(function(key)
  local t = redis.pcall('HMGET', key, 'state', 'round', 'rev', 'meta', 'log', A.round .. ':claim')
  if t.err or not t[1] or not t[2] then return -3, '' end
  if A.claim ~= '' and (t[1] ~= A.state or t[2] ~= A.round or t[6] ~= A.claim) then return -1, t[1] end
  local object, same = parsed(t[4]), true
  if not object then return -3, t[1] end
  for i = 1, #sets, 2 do
    local value = sets[i + 1] ~= '' and sets[i + 1] or nil
    same = same and object[sets[i]] == value
    object[sets[i]] = value
  end
  if same then return 2, t[1] end
  local n, text = written(object)
  if n > tonumber(A.most) then return -6, t[1] end
  put(key, t[3], t[5], 'meta', n > 0 and text or '')
  return 1, t[1]
end)
