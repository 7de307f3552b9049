-- strays looks for members of an index that do not belong there. It writes nothing.
--
-- KEYS, ARGV and what it returns: lib/strays.lua
return strays(false)
