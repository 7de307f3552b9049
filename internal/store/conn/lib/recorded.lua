-- Recorded: how a record is written, alone (put.lua) or with the tasks that are opened for it (open.lua). recording is {kind, name, version it
-- was read at ('0': it is not there yet), name of the call, value, when it is due by TIME ('' for never), how many ends of its tasks were
-- known}. A version is the number of the change that has written it, in its epoch, so that it never comes back, whatever was removed or lost.
local kind, record = recording[1], K.record(recording[1] .. ':' .. recording[2])

-- unrecorded is what keeps the record from being written: an error, {'kept', version, ids} if the call has done it before, or {'record',
-- version} if it is another one now. It writes nothing.
local function unrecorded()
  local wrong = wrongtype('hash', {record}) or wrongtype('zset', {K.records(kind), K.recordsDue(kind), K.recordsEnded(kind)})
  if wrong then return wrong end
  local is = redis.call('HMGET', record, 'version', 'call', 'opened')
  if is[2] == recording[4] then return {'kept', is[1], is[3] or ''} end
  if (is[1] or '0') ~= recording[3] then return {'record', is[1] or '0'} end
end

-- keep writes the record, with the ids that were opened for it, nil for none, and returns its version.
local function keep(opened)
  counted(1)
  local name, version = recording[2], string.format('%d', (epoch - 1) * 1000000000000 + seq + 1)
  redis.call('HSET', record, 'version', version, 'call', recording[4], 'value', recording[5])
  if opened then redis.call('HSET', record, 'opened', opened) end
  redis.call('ZADD', K.records(kind), 0, name)
  if recording[6] ~= '' then
    redis.call('ZADD', K.recordsDue(kind), recording[6], name)
  else
    redis.call('ZREM', K.recordsDue(kind), name)
  end
  if tonumber(redis.call('ZSCORE', K.recordsEnded(kind), name) or '0') == tonumber(recording[7]) then
    redis.call('ZREM', K.recordsEnded(kind), name)
  end
  return version
end
