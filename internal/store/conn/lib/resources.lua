-- resources() is what the node has free of what it offers (gpu=4,mem=65536), less what its rounds have got (gpu:2[0 3] mem:1024[]).
local function resources()
  local has, r = {}, {}
  for name, n in string.gmatch(A.resources, '([%w_]+)=(%d+)') do has[name] = {all = tonumber(n), taken = 0, ids = {}} end
  for _, text in ipairs(redis.call('HVALS', K.used)) do
    for name, n, ids in string.gmatch(text, '([%w_]+):(%d+)%[([%d ]*)%]') do
      local h = has[name]
      if h then
        h.taken = h.taken + tonumber(n)
        for id in string.gmatch(ids, '%d+') do h.ids[tonumber(id)] = true end
      end
    end
  end

  -- short reports whether there is too little for a demand, counting as taken what is kept for a task before it.
  function r.short(demand, kept)
    for name, n in string.gmatch(demand, '([%w_]+)=(%d+)') do
      local h = has[name]
      if kept[name] or not h or h.all - h.taken < tonumber(n) then return true end
    end
    return false
  end

  -- lend says of what a demand finds too little, though the node has it: {name, number asked, number taken, ...}, and makes it free.
  function r.lend(demand)
    local lent = {}
    for name, n in string.gmatch(demand, '([%w_]+)=(%d+)') do
      local h = has[name]
      local lack = h and h.taken + tonumber(n) - h.all or 0
      if lack > 0 then
        lent[#lent + 1], lent[#lent + 2], lent[#lent + 3] = name, tonumber(n), h.taken
        h.taken = h.taken - lack
      end
    end
    return lent
  end

  function r.keep(demand, kept)
    for name in string.gmatch(demand, '([%w_]+)=') do kept[name] = true end
  end

  -- allot takes what a demand asks, and the lowest free pieces of what has few enough to tell them apart.
  function r.allot(demand)
    local parts = {}
    for name, n in string.gmatch(demand, '([%w_]+)=(%d+)') do
      local h, ids = has[name], {}
      h.taken = h.taken + tonumber(n)
      for id = 0, h.all > MOST_IDS and -1 or h.all - 1 do
        if #ids == tonumber(n) then break end
        if not h.ids[id] then
          h.ids[id] = true
          ids[#ids + 1] = id
        end
      end
      parts[#parts + 1] = name .. ':' .. n .. '[' .. table.concat(ids, ' ') .. ']'
    end
    return table.concat(parts, ' ')
  end

  return r
end
