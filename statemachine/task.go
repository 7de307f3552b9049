package statemachine

import "slices"

// What a task may suffer when it does not say: a task that kills its workers,
// or that no node can run, must come to an end.
const (
	// DefaultMaxLosses is how often a task may lose its worker.
	DefaultMaxLosses Limit = 3
	// DefaultMaxFaults is how often a task may fail without being to blame.
	DefaultMaxFaults Limit = 10
)

// Task is what decisions are made from: a task without its payload.
type Task struct {
	ID    int64
	State State
	// Round counts the starts after the first one: round = fails + timeouts +
	// losses + releases + faults for every task that was opened again.
	Round int
	// Rev is raised by every change; a decision names the one it was made from.
	Rev int64

	// Fails, Timeouts, Losses, Releases and Faults count how rounds ended.
	Fails, Timeouts, Losses, Releases, Faults int

	// StopAsked says that the task was cancelled while a worker held it, or
	// while its report waited for the server. It is never opened again.
	StopAsked bool

	// StartAfter is the earliest start. EndBefore is the latest moment of
	// execution. Timeout bounds each round from its claim on, fetch included; from its
	// beginning where it was claimed ahead.
	StartAfter Time
	EndBefore  Time
	Timeout    Duration
	// NotBefore is when the task has rested enough after its last failure (see
	// [Backoff]); 0 if it need not rest.
	NotBefore Time
	Backoff   Backoff

	// A counter may reach its limit; one more ends the task.
	MaxFails, MaxTimeouts, MaxLosses, MaxFaults Limit

	// RetryCodes, if there are any, are the only exit codes after which the task
	// is run again; after one of FatalCodes it never is. A failure without an
	// exit code is not affected.
	RetryCodes, FatalCodes []int
	// ChargeProgram says that failures which are neither the program's own nor of a
	// limit of the round count as Faults. Redis: charge = program.
	ChargeProgram bool
	// AtOnce says that the move that ends the task archives it too, so no manager gets
	// to see it before. Redis: archive = at_once.
	AtOnce bool

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
	// Begun is when its worker began a round that was claimed ahead; 0 if that was at
	// once, or if nobody has said so.
	Begun Time
	// Failed says that the round's error text is not empty.
	Failed bool
	// Class is what kind of failure it was; empty if the reporter did not say.
	Class Class
	// ExitCode is the program's, where HasExit; a program that was killed or
	// never started has none.
	ExitCode int
	HasExit  bool
	// Retry is what the worker says of the next round, should this one have failed:
	// it begins not before that moment, whatever [Backoff] says; Never: there is
	// none. 0 if the worker leaves that to the task.
	Retry Time
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

// Due is the moment from which the task may be claimed: start_after, or the end
// of its rest after a failure if that is later.
func (t *Task) Due() Time { return max(t.StartAfter, t.NotBefore) }

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
	at := max(t.Current.Running, t.Current.Begun).Add(t.Timeout)
	if t.Current.Claim == "" {
		return at
	}
	return at.Add(grace)
}

// lastSuccess is the last moment at which the present round can succeed without being
// overdue.
func (t *Task) lastSuccess() Time { return min(t.EndBefore, t.RoundEnd(0)) }

// succeeds says that a worker may settle the present round with o, a success in time.
func (t *Task) succeeds(o Occurrence, now Time) bool {
	return o.Settles && !o.Failed && !t.StopAsked && now <= t.lastSuccess()
}

// void says that the round which is lost costs the task nothing.
func (o *Occurrence) void() bool { return o.FromLostEpoch || o.Unbegun }

// excused says that the present round failed and the task is not to blame: for
// a class it is not charged for, or because the server says so. A shortage is
// nobody's charge. A failure that another round would not mend is the task's.
func (t *Task) excused(o Occurrence) bool {
	r := &t.Current
	return r.Failed && r.Retry != Never && (o.Excused || r.Class == ClassShortage || t.ChargeProgram && !r.Class.charged())
}

// mayTry says that the worker and the exit code of the present round let the task
// be run again.
func (t *Task) mayTry() bool {
	r := &t.Current
	switch {
	case r.Retry == Never:
		return false
	case !r.HasExit:
		return true
	case slices.Contains(t.FatalCodes, r.ExitCode):
		return false
	default:
		return len(t.RetryCodes) == 0 || slices.Contains(t.RetryCodes, r.ExitCode)
	}
}

// Counter names the field that counts how a kind of round ended. The text is
// the name of the Redis hash field.
type Counter string

// The counters of a task. Faults are the failures that are not charged to it.
const (
	Fails    Counter = "fails"
	Timeouts Counter = "timeouts"
	Losses   Counter = "losses"
	Releases Counter = "releases"
	Faults   Counter = "faults"
)

// Counters lists every counter.
func Counters() []Counter { return []Counter{Fails, Timeouts, Losses, Releases, Faults} }

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
	case Faults:
		return t.Faults
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
	case Faults:
		return t.MaxFaults
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
	case Faults:
		t.Faults++
	}
}

// mayCount says that the task may be opened again after c has been raised:
// within its limit, and never once a stop was asked for.
func (t *Task) mayCount(c Counter) bool {
	if t.StopAsked {
		return false
	}
	return Limit(t.Counted(c))+1 <= t.Limit(c)
}
