package chaos

import "time"

// handling is one call of a handler.
type handling struct {
	task    int64
	manager string
	// from is when it began; to is when it returned, zero if it did not.
	from, to time.Time
}

// handlings are the calls in the order in which they began.
func handlings(lines []line) []handling {
	var all []handling
	under := map[string]int{} // the call that a process makes
	for _, l := range lines {
		if len(l.more) < 3 {
			continue
		}
		manager, at, process := l.more[0], time.UnixMicro(int64(number(l.more[1]))), l.more[2]
		switch l.what {
		case "start":
			under[process] = len(all)
			all = append(all, handling{task: l.id, manager: manager, from: at})
		case "end":
			if i, ok := under[process]; ok && all[i].task == l.id {
				all[i].to = at
			}
		}
	}
	return all
}

// again counts the calls for a task that had been given to a handler before.
func again(all []handling) int {
	n, seen := 0, map[int64]bool{}
	for _, h := range all {
		if seen[h.task] {
			n++
		}
		seen[h.task] = true
	}
	return n
}

// atOnce finds the tasks that two managers handled at the same time. A call that
// did not return ended with its process, and one that was frozen can be
// superseded: only Redis keeps what that one does from counting.
func atOnce(all []handling, frozen func(manager string, within span) bool) []clash {
	var found []clash
	last := map[int64]handling{}
	for _, h := range all {
		before, ok := last[h.task]
		if ok && before.manager != h.manager && before.to.After(h.from) && !frozen(before.manager, span{before.from, before.to}) {
			found = append(found, clash{entry: entry{id: h.task}, first: before.from, second: h.from, until: before.to})
		}
		last[h.task] = h
	}
	return found
}

// frozenWithin reports whether the member was frozen at a moment of the span.
func (f *crew) frozenWithin(name string, s span) bool {
	for _, freeze := range f.named(name).frozen {
		if freeze.from.Before(s.to) && s.from.Before(freeze.to) {
			return true
		}
	}
	return false
}
