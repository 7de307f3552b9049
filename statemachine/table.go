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
		Why: "a manager opens a task that is to wait until it is released"},
	{From: None, Event: Create, Actors: byOpener, When: Always, To: Open,
		Why: "a manager opens a task"},

	{From: Open, Event: Claim, Actors: byWorker, When: MayStart, To: Running,
		Why: "a worker claims a task whose start_after has come and whose end_before has not passed"},
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
		Why: "the worker that holds the round hands in its result"},
	{From: Running, Event: StopOverdue, Actors: byWorker, When: OneMoreTimeout, To: Open,
		Via: StampTimeout, Count: Timeouts, NextRound: true, Fenced: true,
		Why: "the worker stopped its overdue round; max_timeouts allows another"},
	{From: Running, Event: StopOverdue, Actors: byWorker, When: Always, To: TimedOut,
		Via: StampTimeout, Count: Timeouts, Fenced: true,
		Why: "the worker stopped its overdue round once too often"},
	{From: Running, Event: HandBack, Actors: byWorker, When: StopWasAsked, To: Terminated, Fenced: true,
		Why: "the worker hands the task back, but nobody wants it run any more"},
	{From: Running, Event: HandBack, Actors: byWorker, When: Always, To: Open,
		Count: Releases, NextRound: true, Fenced: true,
		Why: "the worker hands the task back on purpose; this costs the task nothing"},
	{From: Running, Event: Terminate, Actors: byWorker, When: Always, To: Terminated, Fenced: true,
		Why: "the worker stopped the round on request"},
	{From: Running, Event: Cancel, Actors: byManager, When: ForeignRound, To: Terminated,
		Why: "the task is called off; a client without a claim id cannot be told to stop, its report is refused"},
	{From: Running, Event: Cancel, Actors: byManager, When: Always, To: Running, AskStop: true,
		Why: "the worker is asked to stop; the task is not opened again"},
	{From: Running, Event: Deadline, Actors: byServer, When: Overdue, To: Expired,
		Why: "end_before has passed; a later report is refused"},
	{From: Running, Event: Deadline, Actors: byServer, When: TimedOutOnceMore, To: Open,
		Via: StampTimeout, Count: Timeouts, NextRound: true,
		Why: "the round took longer than timeout (plus the grace for its worker); max_timeouts allows another"},
	{From: Running, Event: Deadline, Actors: byServer, When: RoundOverdue, To: TimedOut,
		Via: StampTimeout, Count: Timeouts,
		Why: "the round took longer than timeout once too often"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: StopWasAsked, To: Terminated,
		Why: "a stop was asked for and the worker is gone"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: RoundVoid, To: Open,
		Count: Releases, NextRound: true,
		Why: "Redis has lost changes since the round was claimed; this costs the task nothing"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: OneMoreLoss, To: Open,
		Count: Losses, NextRound: true,
		Why: "the worker died or was cut off; max_losses allows another"},
	{From: Running, Event: Lose, Actors: []Actor{Server, Worker}, When: Always, To: Orphaned,
		Count: Losses,
		Why:   "the task lost its worker once too often"},

	{From: Executed, Event: Cancel, Actors: byManager, When: Always, To: Executed, AskStop: true,
		Why: "the report is judged as it is; the task is not opened again"},
	{From: Executed, Event: Settle, Actors: byServer, When: ExecutedLate, To: Expired,
		Why: "the report came after end_before"},
	{From: Executed, Event: Settle, Actors: byServer, When: ExcusedOnceMore, To: Open,
		Via: StampFailure, Count: Faults, NextRound: true,
		Why: "the round's error is not the task's; max_faults allows another"},
	{From: Executed, Event: Settle, Actors: byServer, When: RoundExcused, To: Failed,
		Via: StampFailure, Count: Faults,
		Why: "the round's error is not the task's, but it was so once too often"},
	{From: Executed, Event: Settle, Actors: byServer, When: FailedOnceMore, To: Open,
		Via: StampFailure, Count: Fails, NextRound: true,
		Why: "the round's error is not empty; max_fails and the exit code allow another"},
	{From: Executed, Event: Settle, Actors: byServer, When: RoundFailed, To: Failed,
		Via: StampFailure, Count: Fails,
		Why: "the round's error is not empty once too often, or final"},
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
