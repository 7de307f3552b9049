-- member_prefixed.lua: a letter for the number of digits, then the digits (a1, b10, c100): text order is number order.
local function member(id) return string.char(96 + #id) .. id end
local function id_of(m) return string.sub(m, 2) end
