-- move makes decided moves (lib/moves.lua).
--
-- KEYS meta, due, wakeServer, buckets; then those of the kinds and of the moves
-- ARGV moves (their number), kinds (their number); then those of the kinds and of the moves
-- Returns what moves answers.
local k, a = #K, #A -- up to where KEYS and ARGV are read
--[[lib slots]]
--[[lib evidence]]
--[[lib moves]]
return moves(tonumber(A.moves), tonumber(A.kinds))
