package statemachine

import "slices"

// ClaimMove is where a claim takes a task from and to, for logs and for the
// claim script, which picks its tasks itself.
func ClaimMove() (from, to State) {
	i := slices.IndexFunc(table, func(row Transition) bool { return row.Event == Claim })
	return table[i].From, table[i].To
}

// End is the outcome of a task in which c went beyond its limit, or None for a
// counter without one. A task with that outcome has counted the end of its last
// round as well, without beginning another.
func (c Counter) End() State {
	for i := range table {
		if row := &table[i]; c != "" && row.Count == c && row.To.Ended() {
			return row.To
		}
	}
	return None
}

// Passed lists the states that the round of a task in state s has surely been
// in, s included, in the order of a task's life: for succeeded, the states open,
// running and executed come before it. Each has its stamp in that round.
func Passed(s State) []State {
	var passed []State
	for _, by := range States() {
		if by == s || !reachable(s, by) {
			passed = append(passed, by)
		}
	}
	return passed
}

// reachable reports whether a round can come to the state s without passing
// the state by. A round begins where [Create] puts a task.
func reachable(s, by State) bool {
	seen := map[State]bool{by: true}
	for queue := []State{None}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == s {
			return true
		}
		for i := range table {
			row := &table[i]
			if row.From == queue[0] && !row.NextRound && !seen[row.To] {
				seen[row.To] = true
				queue = append(queue, row.To)
			}
		}
	}
	return false
}
