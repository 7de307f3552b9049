-- current says whether a claim is of this epoch. One without an epoch is of the first.
local function current(claim) return (tonumber(string.match(claim, '^e(%d+)%-') or '') or 1) == epoch end

-- check returns what to answer for a move.
local function check(kind, r, round, fence, t)
  if t.err or not t[1] or not t[2] then return -3 end
  local here = t[1] == kind.from and t[2] == round
  if kind.f then
    if here and t[7] == fence and current(fence) then return t[9] and t[9] ~= '' and not kind.c and -4 or 1 end
    return t[7] == fence and t[8] == kind.event and 2 or -1
  end
  if here and (tonumber(t[3]) or 0) == tonumber(fence) then
    -- What a plan holds back since the decision was made stays.
    local plan = kind.event == 'unblock' and kind.actor == 'server' and t[6] and string.match(t[6], '%d+')
    if plan and redis.pcall('HGET', K.plan(plan), 'state') ~= 'ready' then return -2 end
    return 1
  end
  return t[1] == kind.last and t[2] == r.next and (tonumber(t[3]) or 0) == following(fence) and 2 or -2
end

-- settled reports whether a report that was accepted goes on to the end of its task: what its worker has decided that from is so
-- still, the revision, the session, the time; nobody has asked for a stop, and no plan waits. A claim without a session has none to lose.
local function settled(m, t)
  local till = tonumber(ARGV[m + 6]) or math.huge
  if tonumber(ARGV[m + 5]) ~= (tonumber(t[3]) or 0) or tonumber(wall.text) > till or t[9] and t[9] ~= '' or tonumber(t[6] or '') then return false end
  if not t[12] or not t[14] then return true end
  local doc = session(t[12])
  return not doc.err and doc[1] == t[14] and doc[2] ~= 'lost'
end
