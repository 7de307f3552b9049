package main

var (
	rules    = []string{"./statemachine"}
	storage  = []string{"./internal/store"}
	settling = []string{"./internal/store", "./server"}
)

// defects are planted in the rules, the store and its scripts. Several are
// faults that the original or another queue really had.
var defects = []defect{
	{"expired is not strict", "statemachine/condition.go", "return now > t.EndBefore", "return now >= t.EndBefore", rules},
	{"timed out is not strict", "statemachine/condition.go",
		"return now > t.overdueAt(o.Grace)\n", "return now >= t.overdueAt(o.Grace)\n", rules},
	{"a claim ignores start_after", "statemachine/condition.go",
		"return t.StartAfter <= now && now <= t.EndBefore", "return now <= t.EndBefore", rules},
	{"one run too few", "statemachine/condition.go",
		"return Limit(t.counter(c))+1 <= t.limit(c)", "return Limit(t.counter(c))+1 < t.limit(c)", rules},
	{"executed tasks expire by when they are judged", "statemachine/condition.go",
		"return t.Current.Executed > t.EndBefore", "return now > t.EndBefore", rules},
	{"a worker's claim is not compared when deciding", "statemachine/decide.go",
		`o.Claim == "" || o.Claim != t.Current.Claim || o.Round != t.Round`, `o.Claim == "" || o.Round != t.Round`, rules},
	{"a move does not compare the revision", "statemachine/apply.go", "return t.Rev == m.Rev", "return true", rules},
	{"a re-opened task stays in its round", "statemachine/apply.go", "\t\tt.Round++", "\t\t_ = t.Round", rules},
	{"the timeout is stamped into the next round", "statemachine/move.go",
		"RoundField(m.Round, string(m.Via))", "RoundField(m.ToRound(), string(m.Via))", settling},
	{"max_losses ends nothing", "statemachine/condition.go", "return t.mayCount(Losses)", "return true", rules},
	{"foreign claims get grace", "statemachine/task.go", `if t.Current.Claim == "" {`, `if t.Current.Claim == "-" {`, rules},

	{"claim.lua: tasks start before start_after", "internal/store/scripts/claim.lua",
		"redis.call('ZRANGEBYSCORE', KEYS[k], '-inf', stamp,", "redis.call('ZRANGEBYSCORE', KEYS[k], '-inf', '+inf',", storage},
	{"claim.lua: overdue tasks are claimed", "internal/store/scripts/claim.lua", "or clock > last then return end", "then return end", storage},
	{"claim.lua: what a foreign worker holds is claimed", "internal/store/scripts/claim.lua",
		"if redis.call('ZREM', KEYS[2], id) == 1 then hold(id, t) end", "redis.call('ZREM', KEYS[2], id) hold(id, t)", settling},
	{"claim.lua: a repeated request claims more", "internal/store/scripts/claim.lua",
		"local again = before and string.match(before, '^%S+') == ARGV[3]", "local again = false", storage},
	{"claim.lua: the wake-up is not passed on", "internal/store/scripts/claim.lua",
		"if #got > 0 and not again and redis.call('LLEN'", "if false and redis.call('LLEN'", storage},
	{"claim.lua: numbers are not looked at", "internal/store/scripts/claim.lua",
		"return n and n >= 0 and n < math.huge and text or nil", "return text", storage},
	{"move.lua: a late worker's report is accepted", "internal/store/scripts/move.lua",
		"and t[2] == m.round and t[4] == m.fence then return 1", "then return 1", storage},
	{"move.lua: decisions do not compare the revision", "internal/store/scripts/move.lua",
		"and t[2] == m.round and rev == tonumber(m.fence) then return 1", "and t[2] == m.round then return 1", storage},
	{"move.lua: a repeated report is not recognised", "internal/store/scripts/move.lua",
		"if t[4] == m.fence and t[5] == m.event then return 2 end", "", storage},
	{"move.lua: the task stays in its former set", "internal/store/scripts/move.lua",
		"redis.call('ZREM', sets[m.from], m.id)", "", storage},
	{"move.lua: a re-opened task is in no bucket", "internal/store/scripts/move.lua",
		"redis.call('ZADD', KEYS[k - 1], score, member)", "", storage},
	{"move.lua: executed tasks wake nobody", "internal/store/scripts/move.lua",
		"if m.wake == 'server' then wake[KEYS[3]] = true end", "", storage},
	{"open.lua: a repeated request opens again", "internal/store/scripts/open.lua", "if before then", "if false then", storage},
	{"open.lua: deadlines are not indexed", "internal/store/scripts/open.lua",
		"if deadline ~= '' then redis.call('ZADD', KEYS[5], deadline, text) end", "", storage},
	{"repair.lua: repairs what has changed since", "internal/store/scripts/repair.lua",
		"or table.concat(listed, ' ') ~= ARGV[5] then return -2 end", "then return -2 end", storage},
	{"note.lua: a late worker writes into the log", "internal/store/scripts/note.lua",
		"or t[5] ~= ARGV[3] then return -1 end", "then return -1 end", storage},
	{"ids are first in, first out as text", "internal/store/scripts/open.lua",
		"start, string.char(96 + #text) .. text)", "start, 'a' .. text)", storage},
	{"the server acts on a disagreement seen once", "server/suspects.go",
		"return s.now().Sub(was.since) >= s.delay", "return true", []string{"./server"}},
	{"the server reads one page of due tasks only", "server/settle.go",
		"if err != nil || len(b.Tasks) < s.opt.BatchSize {\n\t\t\treturn moved, b.Next", "if true {\n\t\t\treturn moved, b.Next", []string{"./server"}},
}
