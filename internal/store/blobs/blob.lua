-- blob makes room for bytes that are to be written, and keeps what there is of them for a while.
-- KEYS meta, blobs, blob
-- ARGV hash, size (in bytes), part (bytes of each but the last), lease (in seconds, or '' for what servers keep returned files for), put (in seconds, how long at most until it is complete), limit, quota (in bytes, where no server has published others), after (an id before which no task refers to it), share (of the quota that may be taken), is ('' if it may have to be
--   written, 'complete' if all parts are, else the id of a task that refers to it, or '0' for a step)
-- Returns {1 if it is complete with all its parts, else 0}; or, and nothing changes, {-1, limit} if it is too large, {-2, quota, how much is taken} if it does
-- not fit, or {-3} if it is not there any more. Sent again: the same.
local wrong = wrongtype('zset', {K.blobs}) or wrongtype('hash', {K.blob})
if wrong then return wrong end
local _, seconds = now()
local size, complete = unpack(redis.call('HMGET', K.blob, 'size', 'complete'))
local was, parts = complete, {}
for i = 0, math.ceil(math.min(tonumber(size or A.size) or 0, 2 ^ 32) / tonumber(A.part)) - 1 do parts[i + 1] = K.blob .. ':' .. i end
wrong = wrongtype('string', parts)
if wrong then return wrong end
local whole = #parts == 0 or redis.call('EXISTS', unpack(parts)) == #parts -- another client may have removed what was not complete
if not size then
  if A.is ~= '' then return {-3} end
  local limit, taken = tonumber(meta_blob_limit or A.limit), tonumber(meta_blob_bytes or '0')
  local quota = math.floor(tonumber(meta_blob_quota or A.quota) * tonumber(A.share))
  if tonumber(A.size) > limit then return {-1, limit} end
  if taken + tonumber(A.size) > quota then return {-2, quota, taken} end
  redis.call('HSET', K.blob, 'size', A.size, 'after', A.after)
  redis.call('HINCRBY', K.meta, 'blob_bytes', A.size)
elseif A.is == 'complete' then
  if whole then redis.call('HSET', K.blob, 'complete', '1') end
  complete = '1'
elseif A.is ~= '' then
  redis.call('HSET', K.blob, 'witness', A.is)
end
local lease = tonumber(A.lease) or tonumber(meta_return_retention or '604800')
if not complete then lease = math.min(lease, tonumber(A.put)) end
local before, till = tonumber(was and redis.call('ZSCORE', K.blobs, A.hash) or '0'), seconds + lease
redis.call('ZADD', K.blobs, string.format('%d', math.max(before, till)), A.hash)
return {complete and whole and 1 or 0}
