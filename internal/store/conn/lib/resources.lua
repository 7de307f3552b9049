-- resources(used, offered, lettered) is what a node has free, as far as it is
-- asked: used is the hash of what the rounds of the node have got, offered what it has in all
-- (gpu=4,mem=65536), lettered up to how many pieces are told apart. It reads, and writes nothing.
local function resources(used, offered, lettered)
  local all, taken = {}, nil
  for name, n in string.gmatch(offered, '([%w_]+)=(%d+)') do all[name] = tonumber(n) end

  local function load()
    taken = {}
    for name in pairs(all) do taken[name] = {count = 0, ids = {}} end
    for _, text in ipairs(redis.call('HVALS', used)) do
      for name, n, ids in string.gmatch(text, '([%w_]+):(%d+)%[([%d ]*)%]') do
        local r = taken[name]
        if r then
          r.count = r.count + tonumber(n)
          for id in string.gmatch(ids, '%d+') do r.ids[tonumber(id)] = true end
        end
      end
    end
  end

  local r = {}

  -- short reports whether there is too little for a demand, counting as taken
  -- what is kept for a task before it.
  function r.short(demand, kept)
    if not taken then load() end
    for name, n in string.gmatch(demand, '([%w_]+)=(%d+)') do
      if kept[name] or not all[name] or all[name] - taken[name].count < tonumber(n) then return true end
    end
    return false
  end

  -- lend says of what a demand finds too little, though the node has it: {name, number asked, number taken, ...}. What is
  -- missing counts as free from then on.
  function r.lend(demand)
    local lent = {}
    if not taken then load() end
    for name, n in string.gmatch(demand, '([%w_]+)=(%d+)') do
      local lack = all[name] and taken[name].count + tonumber(n) - all[name] or 0
      if lack > 0 then
        lent[#lent + 1], lent[#lent + 2], lent[#lent + 3] = name, tonumber(n), taken[name].count
        taken[name].count = taken[name].count - lack
      end
    end
    return lent
  end

  -- keep keeps all that a demand names.
  function r.keep(demand, kept)
    for name in string.gmatch(demand, '([%w_]+)=') do kept[name] = true end
  end

  local function pieces(name, n)
    local ids, have = {}, taken[name].ids
    if all[name] > lettered then return ids end
    for id = 0, all[name] - 1 do
      if #ids == n then break end
      if not have[id] then
        have[id] = true
        ids[#ids + 1] = id
      end
    end
    return ids
  end

  -- allot takes what a demand asks: gpu:2[0 3] mem:1024[]
  function r.allot(demand)
    local parts = {}
    for name, n in string.gmatch(demand, '([%w_]+)=(%d+)') do
      taken[name].count = taken[name].count + tonumber(n)
      parts[#parts + 1] = name .. ':' .. n .. '[' .. table.concat(pieces(name, tonumber(n)), ' ') .. ']'
    end
    return table.concat(parts, ' ')
  end

  return r
end
