package statemachine

import "slices"

// The stamps that are not states: moments within a round that are recorded and logged,
// but never a state anyone can observe (TDF document: timeout and failure).
const (
	StampTimeout = "timeout"
	StampFailure = "failure"
)

// StampBegun is when a worker began a round that it had claimed ahead. No move makes it: its report brings it.
const StampBegun = "begun"

// Transition is one row of the table.
type Transition struct {
	From   State
	Event  Event
	Actors []Actor
	// When must hold for the row to be taken; rows are tried in order.
	When Condition
	To   State
	// Via is the stamp passed on the way, if any: one of those above, or a state that
	// the task leaves in the same move.
	Via string
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
	{From: None, Event: Create, Actors: byOpener, When: createdHeld, To: Blocked,
		Why: "it waits until it is released"},
	{From: None, Event: Create, Actors: byOpener, When: always, To: Open,
		Why: "a manager opens a task"},

	{From: Open, Event: Claim, Actors: byWorker, When: mayStart, To: Running,
		Why: "a worker takes it in time"},
	{From: Open, Event: Deadline, Actors: byServer, When: overdue, To: Expired,
		Why: "end_before has passed"},
	{From: Open, Event: Hold, Actors: byManager, When: always, To: Blocked,
		Why: "an operator holds the task"},
	{From: Open, Event: Cancel, Actors: byManager, When: always, To: Cancelled,
		Why: "the task is called off before it ran"},

	{From: Blocked, Event: Unblock, Actors: byOpener, When: always, To: Open,
		Why: "what the task waited for is there"},
	{From: Blocked, Event: Deadline, Actors: byServer, When: overdue, To: Expired,
		Why: "end_before has passed"},
	{From: Blocked, Event: Cancel, Actors: byOpener, When: always, To: Cancelled,
		Why: "the task is called off, or can never be freed"},

	{From: Running, Event: Report, Actors: byWorker, When: succeededInTime, To: Succeeded, Via: string(Executed), Fenced: true,
		Why: "the worker hands in a success and settles it, unless the task has changed since its claim"},
	{From: Running, Event: Report, Actors: byWorker, When: always, To: Executed, Fenced: true,
		Why: "the worker hands in its result"},
	{From: Running, Event: StopOverdue, Actors: byWorker, When: oneMoreTimeout, To: Open,
		Via: StampTimeout, Count: Timeouts, NextRound: true, Fenced: true,
		Why: "max_timeouts allows another round"},
	{From: Running, Event: StopOverdue, Actors: byWorker, When: always, To: TimedOut,
		Via: StampTimeout, Count: Timeouts, Fenced: true,
		Why: "overdue once too often"},
	{From: Running, Event: HandBack, Actors: byWorker, When: stopWasAsked, To: Terminated, Fenced: true,
		Why: "nobody wants it run any more"},
	{From: Running, Event: HandBack, Actors: byWorker, When: always, To: Open,
		Count: Releases, NextRound: true, Fenced: true,
		Why: "this costs the task nothing"},
	{From: Running, Event: Terminate, Actors: byWorker, When: always, To: Terminated, Fenced: true,
		Why: "stopped on request"},
	{From: Running, Event: Cancel, Actors: byManager, When: foreignRound, To: Terminated,
		Why: "a foreign client cannot be told to stop; its report is refused"},
	{From: Running, Event: Cancel, Actors: byManager, When: always, To: Running, AskStop: true,
		Why: "the worker is asked to stop; the task is not opened again"},
	{From: Running, Event: Deadline, Actors: byServer, When: overdue, To: Expired,
		Why: "end_before has passed; a later report is refused"},
	{From: Running, Event: Deadline, Actors: byServer, When: timedOutOnceMore, To: Open,
		Via: StampTimeout, Count: Timeouts, NextRound: true,
		Why: "max_timeouts allows another round"},
	{From: Running, Event: Deadline, Actors: byServer, When: roundOverdue, To: TimedOut,
		Via: StampTimeout, Count: Timeouts,
		Why: "overdue once too often"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: stopWasAsked, To: Terminated,
		Why: "the worker is gone"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: roundVoid, To: Open,
		Count: Releases, NextRound: true,
		Why: "Redis has lost changes since the claim, or the worker had claimed ahead and not begun; this costs the task nothing"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: oneMoreLoss, To: Open,
		Count: Losses, NextRound: true,
		Why: "max_losses allows another round"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: always, To: Orphaned,
		Count: Losses,
		Why:   "lost its worker once too often"},

	{From: Executed, Event: Cancel, Actors: byManager, When: always, To: Executed, AskStop: true,
		Why: "the report is judged as it is; the task is not opened again"},
	{From: Executed, Event: Settle, Actors: byServer, When: executedLate, To: Expired,
		Why: "the report came after end_before"},
	{From: Executed, Event: Settle, Actors: byServer, When: excusedOnceMore, To: Open,
		Via: StampFailure, Count: Faults, NextRound: true,
		Why: "not the task's error; max_faults allows another round"},
	{From: Executed, Event: Settle, Actors: byServer, When: roundExcused, To: Failed,
		Via: StampFailure, Count: Faults,
		Why: "not the task's error, but once too often"},
	{From: Executed, Event: Settle, Actors: byServer, When: failedOnceMore, To: Open,
		Via: StampFailure, Count: Fails, NextRound: true,
		Why: "max_fails and the round itself allow another one"},
	{From: Executed, Event: Settle, Actors: byServer, When: roundFailed, To: Failed,
		Via: StampFailure, Count: Fails,
		Why: "failed once too often, or in a final round"},
	{From: Executed, Event: Settle, Actors: byServer, When: always, To: Succeeded,
		Why: "executed in time and without an error"},

	{From: Succeeded, Event: Archive, Actors: byManager, When: always, To: Archived, Why: archiveWhy},
	{From: Failed, Event: Archive, Actors: byManager, When: always, To: Archived, Why: archiveWhy},
	{From: TimedOut, Event: Archive, Actors: byManager, When: always, To: Archived, Why: archiveWhy},
	{From: Expired, Event: Archive, Actors: byManager, When: always, To: Archived, Why: archiveWhy},
	{From: Cancelled, Event: Archive, Actors: byManager, When: always, To: Archived, Why: archiveWhy},
	{From: Terminated, Event: Archive, Actors: byManager, When: always, To: Archived, Why: archiveWhy},
	{From: Orphaned, Event: Archive, Actors: byManager, When: always, To: Archived, Why: archiveWhy},
}

const archiveWhy = "a manager has handled the outcome; if the task is archived at once, the move that ends it takes this row too"

// Condition is the guard of a row: what must hold beside state, event and
// actor. All comparisons are strict, as in the TDF document: expired when now
// is greater than end_before, timed out when the round took longer than
// timeout, too often when the raised counter is greater than its limit.
type Condition string

// The conditions of the table. None that asks for one more holds once a stop
// was asked for.
const (
	always           Condition = "always"
	createdHeld      Condition = "created on hold"
	mayStart         Condition = "max(start_after, not_before) <= now <= end_before"
	overdue          Condition = "now > end_before"
	foreignRound     Condition = "the round has no claim id"
	stopWasAsked     Condition = "a stop was asked for"
	succeededInTime  Condition = "error is empty, the worker settles, no stop was asked for, now <= end_before, now - begun <= timeout"
	roundOverdue     Condition = "now - begun > timeout (+ grace)"
	timedOutOnceMore Condition = "now - begun > timeout (+ grace), timeouts + 1 <= max_timeouts"
	oneMoreTimeout   Condition = "timeouts + 1 <= max_timeouts"
	roundVoid        Condition = "the round is of an epoch that is over, or was not begun"
	oneMoreLoss      Condition = "losses + 1 <= max_losses"
	executedLate     Condition = "executed > end_before"
	excusedOnceMore  Condition = "error is not empty but excused, faults + 1 <= max_faults"
	roundExcused     Condition = "error is not empty but excused"
	failedOnceMore   Condition = "error is not empty, fails + 1 <= max_fails, the round is not final"
	roundFailed      Condition = "error is not empty"
)

// holds reports whether the condition holds for t when o happens at now.
func (c Condition) holds(t *Task, o Occurrence, now Time) bool {
	switch c {
	case always:
		return true
	case createdHeld:
		return o.Held
	case mayStart:
		return t.Due() <= now && now <= t.EndBefore
	case overdue:
		return now > t.EndBefore
	case foreignRound:
		return t.Current.Claim == ""
	case stopWasAsked:
		return t.StopAsked
	case roundVoid:
		return o.void()
	case succeededInTime:
		return t.succeeds(o, now)
	case roundOverdue:
		return now > t.RoundEnd(o.Grace)
	case executedLate:
		return t.Current.Executed > t.EndBefore
	case roundExcused:
		return t.excused(o)
	case roundFailed:
		return t.Current.Failed
	default:
		return c.allows(t, o, now)
	}
}

// allows is holds for the conditions that ask whether the task may have one
// round more.
func (c Condition) allows(t *Task, o Occurrence, now Time) bool {
	switch c {
	case timedOutOnceMore:
		return now > t.RoundEnd(o.Grace) && t.mayCount(Timeouts)
	case oneMoreTimeout:
		return t.mayCount(Timeouts)
	case oneMoreLoss:
		return t.mayCount(Losses)
	case excusedOnceMore:
		return t.excused(o) && t.mayCount(Faults)
	case failedOnceMore:
		return t.Current.Failed && t.mayCount(Fails) && t.mayTry()
	default:
		return false
	}
}

// Could says of the condition of a row whether it is possible and whether it is
// certain, if nothing is known but who holds the round and what was asked of it:
// foreign, that the claim has no id; stop, that a stop was asked for.
func (row *Transition) Could(foreign, stop bool) (possible, certain bool) {
	switch row.When {
	case always:
		return true, true
	case stopWasAsked:
		return stop, stop
	case foreignRound:
		return foreign, foreign
	case succeededInTime, timedOutOnceMore, oneMoreTimeout, oneMoreLoss, excusedOnceMore, failedOnceMore:
		return !stop, false
	default:
		return true, false
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
