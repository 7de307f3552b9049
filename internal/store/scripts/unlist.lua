-- unlist takes members out of an index that do not belong there. No task changes.
--
-- KEYS, ARGV and what it returns: lib/strays.lua
return strays(true)
