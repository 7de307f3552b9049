-- datetime(s) formats whole seconds since 1970 as "YYYY-mm-dd HH:MM:SS", UTC (days to civil date after Howard Hinnant).
local dated = {} -- a script needs few of them, often
local function datetime(s)
  if dated[s] then return dated[s] end
  local floor = math.floor
  local days = floor(s / 86400) + 719468
  local era, doe = floor(days / 146097), days % 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local day = doy - floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  dated[s] = string.format('%04d-%02d-%02d %02d:%02d:%02d', year, month, day, floor(s / 3600) % 24, floor(s / 60) % 60, s % 60)
  return dated[s]
end

-- append(log, line) is the log with the line at its end. Beyond 64 KiB the middle is left out, so that it stays bounded.
local function append(log, line)
  if not log or log == '' then return line end
  if #log > 49152 and #log + #line > 65536 then -- head and tail must not overlap
    log = string.sub(log, 1, 16384) .. '\n[lines left out]\n' .. string.sub(log, -32768)
  end
  return log .. '\n' .. line
end
