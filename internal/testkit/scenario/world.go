package scenario

import sm "github.com/tdf-go/tdf/statemachine"

// World is a place where tasks live. It has one clock, which stands still
// between two calls of Advance and begins anywhere.
//
// Errors other than those named end the story.
type World interface {
	// Open creates a task with the times, limits, backoff, exit codes and charge
	// of spec and returns its id; the first is 1, the next 2. If spec.State is
	// [sm.Blocked] the task begins on hold. No other field of spec is set.
	Open(spec sm.Task) (int64, error)
	// Claim gives a worker the next due task, by the time it is due, then first in,
	// first out, and false if there is none. The task comes as it stands after
	// the claim. The same request again returns the same task.
	Claim(worker, request string) (sm.Task, bool, error)
	// Read returns a task. Past rounds may be missing.
	Read(id int64) (sm.Task, error)
	// Move carries a decision out. If m.Failed, the round's error text becomes
	// one that is not empty; m.Class and, if m.HasExit, m.ExitCode become the
	// round's. A refusal matches [sm.ErrStale], [sm.ErrConflict] or
	// [sm.ErrStopAsked].
	Move(m sm.Move) (sm.Result, error)
	// Stamps returns the recorded moments of a task by their field names:
	// "0:running".
	Stamps(id int64) (map[string]sm.Time, error)
	// Lists returns the state lists in which the task stands.
	Lists(id int64) ([]sm.State, error)
	// Now is the time of the world's clock.
	Now() (sm.Time, error)
	// Advance sets the world's clock forward.
	Advance(d sm.Duration) error
}
