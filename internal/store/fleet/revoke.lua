-- revoke removes an access token.
-- KEYS meta, tokens
-- ARGV id
-- Returns 1, also if it is gone already.
local wrong = wrongtype('hash', {K.meta, K.tokens})
if wrong then return wrong end
counted(redis.call('HDEL', K.tokens, A.id))
return 1
