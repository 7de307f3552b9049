-- put writes a record without opening tasks.
-- KEYS meta
-- ARGV kind, name, version (it was read at; 0: it is not there yet), call (its name), value, due (by TIME, '' for never),
--   ended (how many ends of its tasks were known)
-- Returns {'kept', its version}, also if this call has written it before; {'record', version}, and nothing changes, if it is another one now.
local recording = {A.kind, A.name, A.version, A.call, A.value, A.due, A.ended}
--[[lib recorded]]
local refusal = unrecorded()
if refusal then return refusal end
now()
return {'kept', keep()}
