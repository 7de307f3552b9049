package critical

import "time"

// Phase is how far a task is.
type Phase uint8

// How far a task can be.
const (
	Waiting Phase = iota
	Running
	Succeeded
	Failed  // it has ended in another way, or will without having run
	Skipped // it was not to run, and that is no failure
)

// Ended reports whether nothing more is to come of the task.
func (p Phase) Ended() bool { return p >= Succeeded }

// When says which end of a task is enough for one that needs it.
type When uint8

// Which ends are enough.
const (
	OnSuccess When = iota
	OnAny
	OnFailure
)

// Need is a task that another one waits for, by its place in the list: before that other one.
type Need struct {
	Task int
	On   When
}

// Task is a task of a graph. Those of one step, or else of one program, are expected to take alike long.
type Task struct {
	Step, Program string
	Phase         Phase
	// Time is how long a task that has succeeded took, or one that runs has run as yet; 0 if that is not known.
	Time  time.Duration
	Needs []Need
}

// verdict is what becomes of a task whose need has ended like that: Waiting if that is enough. continues says that
// also a failure is enough for those that need success.
func verdict(on When, end Phase, continues bool) Phase {
	switch {
	case on == OnAny:
		return Waiting
	case end == Skipped:
		return Skipped
	case on == OnFailure && end == Succeeded:
		return Skipped
	case on == OnSuccess && end == Failed && !continues:
		return Failed
	default:
		return Waiting
	}
}
