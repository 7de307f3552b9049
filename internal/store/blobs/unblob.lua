-- unblob removes a blob that nothing refers to, or what there is of one that was not completed.
-- KEYS meta, blobs, blob
-- ARGV hash, size (in bytes, of the parts where there is no record), part (bytes of each but the last), till (until when it was kept as it was judged, or '': only if it is not complete)
-- Returns 1 if it is gone, else 0.
local most = 2 ^ 32 -- no blob is larger, whatever a damaged record says
local wrong = wrongtype('zset', {K.blobs}) or wrongtype('hash', {K.blob})
if wrong then return wrong end
local till = redis.call('ZSCORE', K.blobs, A.hash)
local size, complete = unpack(redis.call('HMGET', K.blob, 'size', 'complete'))
if A.till == '' and complete or A.till ~= '' and till and tonumber(till) ~= tonumber(A.till) then return 0 end
redis.call('ZREM', K.blobs, A.hash)
local bytes = math.min(tonumber(size or A.size) or 0, most)
for i = 0, math.ceil(bytes / tonumber(A.part)) - 1 do redis.call('DEL', K.blob .. ':' .. i) end
redis.call('DEL', K.blob)
if size and tonumber(size) then redis.call('HINCRBY', K.meta, 'blob_bytes', '-' .. size) end
return 1
