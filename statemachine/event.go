package statemachine

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
	// Hold puts an open task aside; Unblock lets it go on.
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
	// Held says, for Create, that the task begins in Blocked.
	Held bool
	// Excused says, for Settle, that the server holds the node to blame for the
	// round's error, if it has one.
	Excused bool
	// Void says, for Lose, that the round was claimed in an epoch that is over:
	// Redis has lost changes, and no report of that round counts any more.
	Void bool
	// Random, from 0 to 1, spreads the rest after a failure (see [Backoff]).
	Random float64
	// Grace is how long, for Deadline, the server leaves a round whose worker
	// has a claim id alone after its timeout, so that the worker's own report
	// can come first. Foreign claims have no claim id and get no grace.
	Grace Duration
}
