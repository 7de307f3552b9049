package statemachine

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
