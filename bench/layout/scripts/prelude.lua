-- prelude.lua: what every step needs. Prepended to each script.

-- clock reads Redis TIME once: the time as a number, as a text with microseconds and as a UTC date.
-- The text is built from the two integers: tostring would keep four decimals.
local function clock()
  local t = redis.call('TIME')
  local sec, usec = tonumber(t[1]), tonumber(t[2])
  local z = math.floor(sec / 86400) + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  local day = sec % 86400
  return {
    at = sec + usec / 1000000,
    stamp = string.format('%s.%06d', t[1], usec),
    date = string.format('%04d-%02d-%02d %02d:%02d:%02d', year, month, doy - math.floor((153 * mp + 2) / 5) + 1,
      math.floor(day / 3600), math.floor(day % 3600 / 60), day % 60),
  }
end

-- move_line is the log line of one move, as the original writes it.
local function move_line(now, who, id, from, to)
  return string.format('%s - %-10s moving task %s: %s -> %s', now.date, who, id, from, to)
end

-- next_rev is the revision after rev.
local function next_rev(rev) return string.format('%d', tonumber(rev) + 1) end
