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

// Deadline is the next moment at which the server must look at the task, or
// Never. A round under a claim gets grace beyond its timeout (see [Occurrence]).
func (t *Task) Deadline(grace Duration) Time {
	switch t.State {
	case Open, Blocked:
		return t.EndBefore
	case Running:
		return min(t.EndBefore, t.overdueAt(grace))
	default:
		return Never
	}
}

func (t *Task) overdueAt(grace Duration) Time {
	at := t.Current.Running.Add(t.Timeout)
	if t.Current.Claim == "" {
		return at
	}
	return at.Add(grace)
}

func (t *Task) counter(c Counter) int {
	switch c {
	case Fails:
		return t.Fails
	case Timeouts:
		return t.Timeouts
	case Losses:
		return t.Losses
	default:
		return t.Releases
	}
}

func (t *Task) limit(c Counter) Limit {
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
