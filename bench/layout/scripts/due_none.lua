-- due_none.lua: no index of deadlines; a server would have to read every task.
local function due_open(first, id, end_before) end
local function due_run(first, id, now, end_before, timeout, lease) end
local function due_renew(first, id, now, key, round, lease) end
local function due_drop(first, id) end
