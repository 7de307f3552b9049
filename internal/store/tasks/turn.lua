-- turn makes the moves that end rounds of a worker (lib/moves.lua), and then moves due tasks from the buckets to that worker, as far as the
-- limits of queues and node allow (lib/claims.lua). Each is carried out, or not, as it would be alone. Queues take turns, a task each.
-- Within a queue the order is that of lib/heads.lua. Dry, as the script `dry` (lib/dry.lua), it decides the same about one task and writes
-- nothing: it answers what keeps it from being claimed. Queues take turns from that of the task then.
-- KEYS meta, due, wakeServer, buckets, open, running, lastClaim, workerDoc, lease, held, node, busyNode, used, full, wakeNode;
--   then those of the kinds and of the moves; then for each queue: busyQueue, busyBoth, wakeQueue; then for each bucket: ready, wake
-- ARGV moves (their number), kinds (their number), worker, request, most (slots to claim for: a task takes one, or as many as it asks for),
--   ahead (how many of these, the last ones, must belong to no plan, need no resources and count against no limit), writer (the worker as in
--   logs), incarnation (of its session, '' for none), node, rules (their version, '' for any), buckets (version of their list),
--   maxthreads (most rounds on the node, '' for no limit), resources (of the node: gpu=4,mem=65536),
--   first (which of the queues with due tasks has the first turn, from 0), gathers (the name of one that has it instead, if it has such
--   tasks; '' for none), till (from when on nothing is claimed, '' for never), queues (their number);
--   then those of the kinds and of the moves; then of each queue: name, most rounds, most rounds on the node ('' for no limit),
--   '1' for lifo, aging in seconds (0: none), number of its buckets, then of each: priority, resources
-- Returns {what moves answers, claim}. The claim is an error, and it has changed nothing, if a key of it has another type; -1 likewise if
-- the session is over, also because a new epoch has begun; -2 if the rules are older than those in force, or halt.lua has called the
-- request off; -3 if it is too late; else {now, more ('1' or ''), next start or '', {damaged id...}, {task...}, '1' if the list of buckets
-- is newer, {full queue...}, '1' if the node is full, {full queue with a place on this node...}, by how many microseconds now is ahead of
-- TIME, the queue for whose task the worker keeps its free slots or '', '1' if tasks are due that take more slots than are free}. A task is
-- {id, claim id (e<epoch>-<request>.<number>), claimed at, what it got, fields in the order of claimFields in claim.go: the first 14 if it
-- has no others}.
-- Sent again with the same request: the same tasks, as far as they are still held, and nothing changes but the heartbeat.
-- Dry: {places left of the queue, of it on the node, of the node ('' without a limit), '1' if the gate of the node is closed,
--  what hindrance says.., '1' if the task would be claimed, another queue for whose task the worker keeps its free slots, or ''}.
local k, a = #K, #A -- up to where KEYS and ARGV are read
--[[lib claims]]
if dry then return claims() end
local moved = {}
if A.moves ~= '0' then
  --[[lib moves]]
  moved = moves(tonumber(A.moves), tonumber(A.kinds))
  if moved.err then return moved end
end
local fine, claimed = pcall(claims)
if not fine then claimed = type(claimed) == 'table' and claimed or {err = 'ERR ' .. tostring(claimed)} end
if A.moves == '0' and type(claimed) == 'table' and claimed.err then return claimed end
return {moved, claimed}
