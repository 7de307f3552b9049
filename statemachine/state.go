package statemachine

import "slices"

// State is where a task is. The text is what Redis holds: the value of the
// hash field "state" and the name of the sorted set that lists the task.
type State string

// The states of a task. Main states and outcomes are those of the TDF
// document; Blocked, Cancelled, Terminated and Orphaned come from Disbatch.
const (
	// None is the state of a task that does not exist yet.
	None State = ""
	// Blocked tasks wait for something other than time: a hold, a dependency.
	Blocked State = "blocked"
	// Open tasks may be claimed once their start_after has come.
	Open State = "open"
	// Running tasks are held by one worker under one claim.
	Running State = "running"
	// Executed tasks carry a worker's report and wait for the server.
	Executed State = "executed"
	// Succeeded is the outcome of a round without an error.
	Succeeded State = "succeeded"
	// Failed is the outcome of a task that failed more often than max_fails.
	Failed State = "failed"
	// TimedOut is the outcome of a task that timed out more often than max_timeouts.
	TimedOut State = "timed_out"
	// Expired is the outcome of a task that was not executed by end_before.
	Expired State = "expired"
	// Cancelled is the outcome of a task called off before it ran.
	Cancelled State = "cancelled"
	// Terminated is the outcome of a task stopped on request while it ran.
	Terminated State = "terminated"
	// Orphaned is the outcome of a task that lost its worker more often than max_losses.
	Orphaned State = "orphaned"
	// Archived tasks have been handled by a manager; nothing moves them again.
	Archived State = "archived"
)

// States lists every state a task can be seen in, in the order of its life.
func States() []State {
	return []State{
		Blocked, Open, Running, Executed,
		Succeeded, Failed, TimedOut, Expired, Cancelled, Terminated, Orphaned,
		Archived,
	}
}

// Outcomes lists the end states a manager handles and archives.
func Outcomes() []State {
	return []State{Succeeded, Failed, TimedOut, Expired, Cancelled, Terminated, Orphaned}
}

// Valid reports whether s is one of [States].
func (s State) Valid() bool { return slices.Contains(States(), s) }

// Ended reports whether s is one of [Outcomes]: the work is over, the archive
// is still to come.
func (s State) Ended() bool { return slices.Contains(Outcomes(), s) }

// Settled reports whether s is an outcome or Archived, so nothing more will run.
func (s State) Settled() bool { return s == Archived || s.Ended() }
