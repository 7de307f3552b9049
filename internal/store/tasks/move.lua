-- move makes decided moves, and returns what moves answers (lib/moves.lua).
-- KEYS meta, due, wakeServer, buckets; then those of the kinds and of the moves
-- ARGV moves (their number), kinds (their number); then those of the kinds and of the moves
local k, a = #K, #A -- up to where KEYS and ARGV are read
--[[lib moves]]
return moves(tonumber(A.moves), tonumber(A.kinds))
