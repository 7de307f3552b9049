package statemachine

// DefaultMaxLosses is how often a task may lose its worker when it does not
// say: a task that kills its workers must come to an end.
const DefaultMaxLosses Limit = 3

// Task is what decisions are made from: a task without its payload.
type Task struct {
	ID    int64
	State State
	// Round counts the starts after the first one: round = fails + timeouts +
	// losses + releases for every task that was opened again.
	Round int
	// Rev is raised by every change; a decision names the one it was made from.
	Rev int64

	// Fails, Timeouts, Losses and Releases count how rounds ended.
	Fails, Timeouts, Losses, Releases int

	// StartAfter is the earliest start. EndBefore is the latest moment of
	// execution. Timeout bounds each round from its claim on, fetch included.
	StartAfter Time
	EndBefore  Time
	Timeout    Duration

	// A counter may reach its limit; one more ends the task.
	MaxFails, MaxTimeouts, MaxLosses Limit

	// Outcome is the end state of an archived task.
	Outcome State

	// Current is the round the task is in; Past are the rounds before it, where
	// the reader asked for them.
	Current Round
	Past    []Round
}

// Round is the record of one round as far as decisions need it.
type Round struct {
	// Claim is the id the worker made for its claim; empty before the claim and
	// for claims by foreign clients.
	Claim string
	// Running and Executed are when the claim and the report were accepted, 0
	// if that has not happened.
	Running, Executed Time
	// Failed says that the round's error text is not empty.
	Failed bool
	// End is the event by which the round's worker closed it. It stays, so that
	// a repeated report is recognised. Empty while open, and if the server did it.
	End Event
}

// End is how the task ended: its state, or, once it is archived, the outcome it
// was archived with. It is one of [Outcomes] exactly if the work is over.
func (t *Task) End() State {
	if t.State == Archived {
		return t.Outcome
	}
	return t.State
}

// Deadline is the next moment at which the server must look at the task, or
// Never. A round under a claim gets grace beyond its timeout (see [Occurrence]).
func (t *Task) Deadline(grace Duration) Time {
	switch t.State {
	case Open, Blocked:
		return t.EndBefore
	case Running:
		return min(t.EndBefore, t.RoundEnd(grace))
	default:
		return Never
	}
}

// RoundEnd is the moment after which the round has timed out, as its worker
// counts it with grace 0, and as the server does with the grace it leaves to a
// round under a claim. Never without a timeout.
func (t *Task) RoundEnd(grace Duration) Time {
	at := t.Current.Running.Add(t.Timeout)
	if t.Current.Claim == "" {
		return at
	}
	return at.Add(grace)
}

// Counted is how often a round of the task ended in the way c counts.
func (t *Task) Counted(c Counter) int {
	switch c {
	case Fails:
		return t.Fails
	case Timeouts:
		return t.Timeouts
	case Losses:
		return t.Losses
	case Releases:
		return t.Releases
	default:
		return 0
	}
}

// Ends is how many ends of rounds have been counted: the sum of all counters.
// It equals Round, and Round + 1 where the last count ended the task (see
// [Counter.End]).
func (t *Task) Ends() int {
	sum := 0
	for _, c := range Counters() {
		sum += t.Counted(c)
	}
	return sum
}

// Limit is what c may reach; one more ends the task. Releases are unlimited.
func (t *Task) Limit(c Counter) Limit {
	switch c {
	case Fails:
		return t.MaxFails
	case Timeouts:
		return t.MaxTimeouts
	case Losses:
		return t.MaxLosses
	default:
		return Unlimited
	}
}

func (t *Task) count(c Counter) {
	switch c {
	case Fails:
		t.Fails++
	case Timeouts:
		t.Timeouts++
	case Losses:
		t.Losses++
	case Releases:
		t.Releases++
	}
}
