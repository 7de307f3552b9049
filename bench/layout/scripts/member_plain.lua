-- member_plain.lua: sets hold the id as it is; ties come out as text ("10" before "9").
local function member(id) return id end
local function id_of(m) return m end
