-- member_padded.lua: twenty digits, so that text order is number order.
local function member(id) return string.rep('0', 20 - #id) .. id end
local function id_of(m) return string.match(m, '^0*(%d+)$') end
