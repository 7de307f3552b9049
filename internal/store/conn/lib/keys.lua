-- Each K.name and A.name of the files has become a place in KEYS and ARGV, as the header of the script lists them, or what makes
-- a key that becomes known here only; see named.go. What each line needs is local: a global is looked up each time.
local redis, KEYS, ARGV, string, table, math, tonumber, unpack, ipairs = redis, KEYS, ARGV, string, table, math, tonumber, unpack, ipairs
local namespace = string.sub(KEYS[1], 1, -5) -- it is that of meta
