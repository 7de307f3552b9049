package statemachine

import "slices"

// Stamp names a moment within a round that is recorded and logged but is never
// a state anyone can observe (TDF document: timeout and failure).
type Stamp string

// The stamps that are not states.
const (
	StampTimeout Stamp = "timeout"
	StampFailure Stamp = "failure"
)

// Transition is one row of the table.
type Transition struct {
	From   State
	Event  Event
	Actors []Actor
	// When must hold for the row to be taken; rows are tried in order.
	When Condition
	To   State
	// Via is the stamp passed on the way, if any.
	Via Stamp
	// Count is the counter the row raises, if any.
	Count Counter
	// NextRound says that the task starts over in the next round.
	NextRound bool
	// AskStop says that the task stays where it is and is marked: a stop was
	// asked for.
	AskStop bool
	// Fenced says that only the holder of the round's claim may take the row.
	// Rows that are not fenced compare the revision instead.
	Fenced bool
	// Why is the rule in a sentence, for the generated document.
	Why string
}

// Table returns the transition table. Every rule about states is in it; rows
// with the same (From, Event, Actor) are tried in order and the first whose
// condition holds is taken. The result is a copy, the caller's to change.
func Table() []Transition {
	rows := slices.Clone(table)
	for i := range rows {
		rows[i].Actors = slices.Clone(rows[i].Actors)
	}
	return rows
}

var (
	byManager = []Actor{Manager}
	byWorker  = []Actor{Worker}
	byServer  = []Actor{Server}
	byOpener  = []Actor{Manager, Server}
)

var table = []Transition{
	{From: None, Event: Create, Actors: byOpener, When: CreatedHeld, To: Blocked,
		Why: "it waits until it is released"},
	{From: None, Event: Create, Actors: byOpener, When: Always, To: Open,
		Why: "a manager opens a task"},

	{From: Open, Event: Claim, Actors: byWorker, When: MayStart, To: Running,
		Why: "a worker takes it in time"},
	{From: Open, Event: Deadline, Actors: byServer, When: Overdue, To: Expired,
		Why: "end_before has passed"},
	{From: Open, Event: Hold, Actors: byManager, When: Always, To: Blocked,
		Why: "an operator holds the task"},
	{From: Open, Event: Cancel, Actors: byManager, When: Always, To: Cancelled,
		Why: "the task is called off before it ran"},

	{From: Blocked, Event: Unblock, Actors: byOpener, When: Always, To: Open,
		Why: "what the task waited for is there"},
	{From: Blocked, Event: Deadline, Actors: byServer, When: Overdue, To: Expired,
		Why: "end_before has passed"},
	{From: Blocked, Event: Cancel, Actors: byOpener, When: Always, To: Cancelled,
		Why: "the task is called off, or can never be freed"},

	{From: Running, Event: Report, Actors: byWorker, When: Always, To: Executed, Fenced: true,
		Why: "the worker hands in its result"},
	{From: Running, Event: StopOverdue, Actors: byWorker, When: OneMoreTimeout, To: Open,
		Via: StampTimeout, Count: Timeouts, NextRound: true, Fenced: true,
		Why: "max_timeouts allows another round"},
	{From: Running, Event: StopOverdue, Actors: byWorker, When: Always, To: TimedOut,
		Via: StampTimeout, Count: Timeouts, Fenced: true,
		Why: "overdue once too often"},
	{From: Running, Event: HandBack, Actors: byWorker, When: StopWasAsked, To: Terminated, Fenced: true,
		Why: "nobody wants it run any more"},
	{From: Running, Event: HandBack, Actors: byWorker, When: Always, To: Open,
		Count: Releases, NextRound: true, Fenced: true,
		Why: "this costs the task nothing"},
	{From: Running, Event: Terminate, Actors: byWorker, When: Always, To: Terminated, Fenced: true,
		Why: "stopped on request"},
	{From: Running, Event: Cancel, Actors: byManager, When: ForeignRound, To: Terminated,
		Why: "a foreign client cannot be told to stop; its report is refused"},
	{From: Running, Event: Cancel, Actors: byManager, When: Always, To: Running, AskStop: true,
		Why: "the worker is asked to stop; the task is not opened again"},
	{From: Running, Event: Deadline, Actors: byServer, When: Overdue, To: Expired,
		Why: "end_before has passed; a later report is refused"},
	{From: Running, Event: Deadline, Actors: byServer, When: TimedOutOnceMore, To: Open,
		Via: StampTimeout, Count: Timeouts, NextRound: true,
		Why: "max_timeouts allows another round"},
	{From: Running, Event: Deadline, Actors: byServer, When: RoundOverdue, To: TimedOut,
		Via: StampTimeout, Count: Timeouts,
		Why: "overdue once too often"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: StopWasAsked, To: Terminated,
		Why: "the worker is gone"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: RoundVoid, To: Open,
		Count: Releases, NextRound: true,
		Why: "Redis has lost changes since the claim; this costs the task nothing"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: OneMoreLoss, To: Open,
		Count: Losses, NextRound: true,
		Why: "max_losses allows another round"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: Always, To: Orphaned,
		Count: Losses,
		Why:   "lost its worker once too often"},

	{From: Executed, Event: Cancel, Actors: byManager, When: Always, To: Executed, AskStop: true,
		Why: "the report is judged as it is; the task is not opened again"},
	{From: Executed, Event: Settle, Actors: byServer, When: ExecutedLate, To: Expired,
		Why: "the report came after end_before"},
	{From: Executed, Event: Settle, Actors: byServer, When: ExcusedOnceMore, To: Open,
		Via: StampFailure, Count: Faults, NextRound: true,
		Why: "not the task's error; max_faults allows another round"},
	{From: Executed, Event: Settle, Actors: byServer, When: RoundExcused, To: Failed,
		Via: StampFailure, Count: Faults,
		Why: "not the task's error, but once too often"},
	{From: Executed, Event: Settle, Actors: byServer, When: FailedOnceMore, To: Open,
		Via: StampFailure, Count: Fails, NextRound: true,
		Why: "max_fails and the round itself allow another one"},
	{From: Executed, Event: Settle, Actors: byServer, When: RoundFailed, To: Failed,
		Via: StampFailure, Count: Fails,
		Why: "failed once too often, or in a final round"},
	{From: Executed, Event: Settle, Actors: byServer, When: Always, To: Succeeded,
		Why: "executed in time and without an error"},

	{From: Succeeded, Event: Archive, Actors: byManager, When: Always, To: Archived, Why: archiveWhy},
	{From: Failed, Event: Archive, Actors: byManager, When: Always, To: Archived, Why: archiveWhy},
	{From: TimedOut, Event: Archive, Actors: byManager, When: Always, To: Archived, Why: archiveWhy},
	{From: Expired, Event: Archive, Actors: byManager, When: Always, To: Archived, Why: archiveWhy},
	{From: Cancelled, Event: Archive, Actors: byManager, When: Always, To: Archived, Why: archiveWhy},
	{From: Terminated, Event: Archive, Actors: byManager, When: Always, To: Archived, Why: archiveWhy},
	{From: Orphaned, Event: Archive, Actors: byManager, When: Always, To: Archived, Why: archiveWhy},
}

const archiveWhy = "a manager has handled the outcome"

// Condition is the guard of a row: what must hold beside state, event and
// actor. All comparisons are strict, as in the TDF document: expired when now
// is greater than end_before, timed out when the round took longer than
// timeout, too often when the raised counter is greater than its limit.
type Condition string

// The conditions of the table. None that asks for one more holds once a stop
// was asked for.
const (
	Always           Condition = "always"
	CreatedHeld      Condition = "created on hold"
	MayStart         Condition = "max(start_after, not_before) <= now <= end_before"
	Overdue          Condition = "now > end_before"
	ForeignRound     Condition = "the round has no claim id"
	StopWasAsked     Condition = "a stop was asked for"
	RoundOverdue     Condition = "now - running > timeout (+ grace)"
	TimedOutOnceMore Condition = "now - running > timeout (+ grace), timeouts + 1 <= max_timeouts"
	OneMoreTimeout   Condition = "timeouts + 1 <= max_timeouts"
	RoundVoid        Condition = "the round is of an epoch that is over"
	OneMoreLoss      Condition = "losses + 1 <= max_losses"
	ExecutedLate     Condition = "executed > end_before"
	ExcusedOnceMore  Condition = "error is not empty but excused, faults + 1 <= max_faults"
	RoundExcused     Condition = "error is not empty but excused"
	FailedOnceMore   Condition = "error is not empty, fails + 1 <= max_fails, the round is not final"
	RoundFailed      Condition = "error is not empty"
)

// holds reports whether the condition holds for t when o happens at now.
func (c Condition) holds(t *Task, o Occurrence, now Time) bool {
	switch c {
	case Always:
		return true
	case CreatedHeld:
		return o.Held
	case MayStart:
		return t.Due() <= now && now <= t.EndBefore
	case Overdue:
		return now > t.EndBefore
	case ForeignRound:
		return t.Current.Claim == ""
	case StopWasAsked:
		return t.StopAsked
	case RoundVoid:
		return o.FromLostEpoch
	case RoundOverdue:
		return now > t.RoundEnd(o.Grace)
	case ExecutedLate:
		return t.Current.Executed > t.EndBefore
	case RoundExcused:
		return t.excused(o)
	case RoundFailed:
		return t.Current.Failed
	default:
		return c.allows(t, o, now)
	}
}

// allows is holds for the conditions that ask whether the task may have one
// round more.
func (c Condition) allows(t *Task, o Occurrence, now Time) bool {
	switch c {
	case TimedOutOnceMore:
		return now > t.RoundEnd(o.Grace) && t.mayCount(Timeouts)
	case OneMoreTimeout:
		return t.mayCount(Timeouts)
	case OneMoreLoss:
		return t.mayCount(Losses)
	case ExcusedOnceMore:
		return t.excused(o) && t.mayCount(Faults)
	case FailedOnceMore:
		return t.Current.Failed && t.mayCount(Fails) && t.mayTry()
	default:
		return false
	}
}

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
		if row := &table[i]; c != "" && row.Count == c && row.To.IsOutcome() {
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
