-- now() is the only clock of TDF: the time of the namespace, read once in each script. It is TIME and an offset. TIME may step, by hand or
-- at a failover; meta remembers, in microseconds, TIME and the offset at the last change ("<TIME> <offset>" in `clock`). Where TIME is
-- behind that, it has stepped back, and the offset is larger by as much: the time of the namespace never goes back. Else the offset is
-- smaller by a twentieth of the time since, until it is 0. So order and lengths of time use now(), and the other moments, which people name
-- (start_after, end_before), TIME: moment(text) is when, by now(), TIME will be there; if it steps back again, that is early, never late.
-- now() returns the time as text with six decimals, made of two integers because Lua's tostring keeps four, and the whole seconds.
-- wall.mark is what meta has; truth and ahead are TIME and the offset.
local wall, slew = {}, 20
local function seconds(us)
  local s = math.floor(us / 1000000)
  return string.format('%d.%06d', s, us - s * 1000000), s
end

local function now()
  if not wall.text then
    local s, us = time()
    wall.truth, wall.ahead = s * 1000000 + us, 0
    local last, offset = string.match(wall.mark or '', '^(%d+) (%d+)$')
    if last then
      wall.last, offset = tonumber(last), tonumber(offset)
      local since = wall.truth - wall.last
      wall.ahead = since < 0 and offset - since or math.max(0, offset - math.floor(since / slew))
    end
    wall.text, wall.whole = seconds(wall.truth + wall.ahead)
  end
  return wall.text, wall.whole
end

-- noted is what meta is to remember, or nil where that is not needed yet: it is a second old at most, if anything goes on.
local function noted(always)
  if not wall.text then return nil end
  local since = wall.truth - (wall.last or 0)
  if always or since < 0 or since >= 1000000 then return string.format('%d %d', wall.truth, wall.ahead) end
end

local function moment(text)
  now()
  local at = tonumber(text) or math.huge
  if wall.ahead == 0 or at == math.huge then return text end
  at = at * 1000000
  return (seconds(at + math.max(0, wall.ahead - math.floor(math.max(0, at - wall.truth) / slew))))
end
