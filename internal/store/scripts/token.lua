-- token wakes one waiter of a list that holds at most one token.
--
-- KEYS[1] meta   KEYS[2] list
-- Returns 1.
if redis.call('LLEN', KEYS[2]) == 0 then redis.call('LPUSH', KEYS[2], '1') end
return 1
