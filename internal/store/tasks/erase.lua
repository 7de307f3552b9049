-- erase removes a record.
-- KEYS meta
-- ARGV kind, name, version (it was read at)
-- Returns {'erased'}, also if it is not there; {'record', version}, and nothing changes, if it is another one now.
local record = K.record(A.kind .. ':' .. A.name)
local wrong = wrongtype('hash', {record}) or wrongtype('zset', {K.records(A.kind), K.recordsDue(A.kind), K.recordsEnded(A.kind)})
if wrong then return wrong end
local version = redis.call('HGET', record, 'version')
if version and version ~= A.version then return {'record', version} end
if version then
  now()
  counted(1)
end
redis.call('DEL', record)
redis.call('ZREM', K.records(A.kind), A.name)
redis.call('ZREM', K.recordsDue(A.kind), A.name)
redis.call('ZREM', K.recordsEnded(A.kind), A.name)
return {'erased'}
