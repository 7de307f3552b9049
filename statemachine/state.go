package statemachine

import "slices"

// State is where a task is. The text is what Redis holds: the value of the
// hash field "state" and the name of the sorted set that lists the task.
type State string

// The states of a task.
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

// Waiting lists the states in which a task waits to begin: no worker has it, so what it is to do may still change.
func Waiting() []State { return []State{Blocked, Open} }

// Valid reports whether s is one of [States].
func (s State) Valid() bool { return slices.Contains(States(), s) }

// IsOutcome reports whether s is one of [Outcomes]: the work is over, the archive
// is still to come.
func (s State) IsOutcome() bool { return slices.Contains(Outcomes(), s) }

// Terminal reports whether s is an outcome or Archived, so nothing more will run.
func (s State) Terminal() bool { return s == Archived || s.IsOutcome() }

// Event is something that happens to a task and may move it.
type Event string

// The events of the table.
const (
	// Create brings a task into being.
	Create Event = "create"
	// Claim is a worker taking an open task.
	Claim Event = "claim"
	// Report is a worker handing in the result of a round.
	Report Event = "report"
	// StopOverdue is a worker that stopped its own round after its timeout.
	StopOverdue Event = "stop_overdue"
	// HandBack is a worker giving a task back on purpose (drain).
	HandBack Event = "hand_back"
	// Deadline is the server looking at a task because a time has come.
	Deadline Event = "deadline"
	// Settle is the server judging an executed round.
	Settle Event = "settle"
	// Lose is the loss of the worker that held the task.
	Lose Event = "lose"
	// Hold keeps an open task from starting; Unblock ends that.
	Hold Event = "hold"
	// Unblock opens a blocked task.
	Unblock Event = "unblock"
	// Cancel calls a task off: at once while it waits; one that a worker holds,
	// or has reported, is marked, so that it is stopped and not opened again.
	Cancel Event = "cancel"
	// Terminate is a running task stopped on request.
	Terminate Event = "terminate"
	// Archive closes the books on an ended task.
	Archive Event = "archive"
)

// Events lists every event.
func Events() []Event {
	return []Event{
		Create, Claim, Report, StopOverdue, HandBack, Deadline, Settle, Lose,
		Hold, Unblock, Cancel, Terminate, Archive,
	}
}

// Actor is the kind of program that brings an event about.
type Actor string

// The three programs of TDF.
const (
	Manager Actor = "manager"
	Worker  Actor = "worker"
	Server  Actor = "server"
)

// Actors lists every actor.
func Actors() []Actor { return []Actor{Manager, Worker, Server} }

// Occurrence is one event at one moment: what [Decide] is asked about.
type Occurrence struct {
	Event Event
	Actor Actor
	// Claim identifies the round a worker speaks for. Required for the events
	// that close a round by its worker (see [Transition.Fenced]).
	Claim string
	// Round is the round that worker speaks for.
	Round int
	// Failed says, for Report, that the round's error text is not empty.
	Failed bool
	// Class, ExitCode and HasExit are, for Report, those of the [Round].
	Class    Class
	ExitCode int
	HasExit  bool
	// Retry is, for Report, that of the [Round]; for HandBack, before when the next
	// round does not begin, 0 for no such moment.
	Retry Time
	// Settles says, for Report, that the reporter settles a success itself, in the same
	// move. Not for a task of a plan.
	Settles bool
	// Held says, for Create, that the task begins in Blocked.
	Held bool
	// Excused says, for Settle, that the server holds the node to blame for the
	// round's error, if it has one.
	Excused bool
	// FromLostEpoch says, for Lose, that the round was claimed in an epoch that is over:
	// Redis has lost changes, and no report of that round counts any more.
	FromLostEpoch bool
	// Unbegun says, for Lose, that the round was claimed ahead and its worker has not
	// begun it, as far as the order of its claims tells.
	Unbegun bool
	// Random, from 0 to 1, spreads the rest after a failure (see [Backoff]).
	Random float64
	// Grace is how long, for Deadline, the server leaves a round whose worker
	// has a claim id alone after its timeout, so that the worker's own report
	// can come first. Foreign claims have no claim id and get no grace.
	Grace Duration
}

// Class says what kind of thing made a round fail. The text is what Redis holds
// in the round's field "class".
type Class string

// The classes of failed rounds. Time, memory and disk are the limits of a round.
const (
	// ClassProgram is a program that said so itself: by its exit code, by a
	// signal that nobody of TDF sent, or by a Go handler's error.
	ClassProgram Class = "program"
	// ClassTime is a round that took longer than it may.
	ClassTime Class = "time"
	// ClassMemory is a round that wanted more memory than it may have.
	ClassMemory Class = "memory"
	// ClassDisk is a round that wrote more than it may.
	ClassDisk Class = "disk"
	// ClassFetch is a program that could not be fetched.
	ClassFetch Class = "fetch"
	// ClassHost is a node that could not run the program: no memory to start
	// it, a full disk, a file system that does not answer.
	ClassHost Class = "host"
	// ClassInfrastructure is TDF itself, or what it needs, going wrong.
	ClassInfrastructure Class = "infrastructure"
	// ClassShortage is a node that lacked what a worker needs to begin the round:
	// descriptors, processes, memory, room on its disk. It is never charged to the
	// task, whatever that says, and is a fault only where [ShortageCounts].
	ClassShortage Class = "shortage"
	// ClassHandler is a worker that has Go functions only, and none of the program's
	// name: it handed the round back, so this is never a failure.
	ClassHandler Class = "handler"
)

// charged reports whether a failure of this class is the task's own, also for a
// task that is charged for nothing else (see [Task.ChargeProgram]). A class that
// is empty or unheard of is charged: a task must come to an end.
func (c Class) charged() bool {
	switch c {
	case ClassFetch, ClassHost, ClassInfrastructure, ClassShortage, ClassHandler:
		return false
	default:
		return true
	}
}

// MostShortages is how often in a row a task is handed back because its node was
// short of something.
const MostShortages = 3

// ShortageCounts reports whether a round that its node could not begin, for want
// of something, is a fault; if not, the task is handed back and that costs it
// nothing. nodes are those of the rounds right before it that ended in the same
// way. Where another node lacks something too, the task may be what asks too much.
func ShortageCounts(nodes []string, node string) bool {
	return len(nodes) >= MostShortages || slices.ContainsFunc(nodes, func(other string) bool { return other != node })
}
