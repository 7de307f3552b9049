-- token wakes one waiter of a list that holds at most one token.
-- KEYS meta; then the list
-- Returns 1.
local list = KEYS[#K + 1]
if redis.call('LLEN', list) == 0 then redis.call('LPUSH', list, '1') end
return 1
