package task

import (
	"strings"
	"time"
)

// WorkerState is what a worker does, as the registry shows it.
type WorkerState string

// The states of a worker. The first three are the worker's own word; a server
// says lost, and a worker that has left in good order says stopped.
const (
	WorkerReady    WorkerState = "ready"
	WorkerDraining WorkerState = "draining" // claims nothing, still runs something
	WorkerDrained  WorkerState = "drained"  // claims nothing, runs nothing
	WorkerLost     WorkerState = "lost"     // not heard of for longer than its lease; its tasks went back
	WorkerStopped  WorkerState = "stopped"
)

// Alive reports whether the worker counts as being there.
func (s WorkerState) Alive() bool {
	return s == WorkerReady || s == WorkerDraining || s == WorkerDrained
}

// WorkerCommand is what an operator wants of a worker.
type WorkerCommand string

// The orders.
const (
	NoCommand WorkerCommand = ""
	// CommandDrain stays with the worker's name, over restarts, until it is taken back.
	CommandDrain WorkerCommand = "drain"
	// CommandStop ends this process; started again, the worker works.
	CommandStop WorkerCommand = "stop"
)

// Registration is what a worker says of itself at its start.
type Registration struct {
	Name string `json:"name"`
	// Node is the name of the host in records, Host the host's own name.
	Node string `json:"node"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Identity says which start of which process of which boot of which host this
	// is, so that a successor on the same host can tell that it is gone, and so
	// that a registration whose answer was lost is recognised. Required.
	Identity    string `json:"-"`
	Version     string `json:"version"`
	Containment string `json:"containment"`
	Slots       int    `json:"slots"`
	// Labels, Env, Resources, Classes, MaxThreads and HandlersOnly are what the
	// worker offers (see [Offer]).
	Labels     []string  `json:"labels"`
	Env        string    `json:"env"`
	Resources  Resources `json:"resources"`
	Classes    []string  `json:"classes"`
	MaxThreads Limit     `json:"maxthreads"`
	// HandlersOnly says that it runs no programs, only Go functions.
	HandlersOnly bool `json:"handlers_only"`
	// Replaces is the incarnation that the caller knows to be dead, although no
	// server has said so: that of a process of this host that is gone, one whose
	// heartbeat the caller has seen stand still for one full lease by its own
	// clock, or the caller's own session that it gives up. 0 for none.
	Replaces int64 `json:"-"`
}

// Offer is what the worker offers to tasks.
func (r *Registration) Offer() Offer {
	return Offer{
		Worker: r.Name, Node: r.Node, Env: r.Env, Labels: r.Labels, Resources: r.Resources, Classes: r.Classes, MaxThreads: r.MaxThreads,
		HandlersOnly: r.HandlersOnly, Slots: r.Slots,
	}
}

// Worker is a worker as the registry knows it.
type Worker struct {
	Registration

	// ID stays with the name; Incarnation is raised by each start.
	ID          int64         `json:"id"`
	Incarnation int64         `json:"incarnation"`
	State       WorkerState   `json:"state"`
	Order       WorkerCommand `json:"order"`
	// Reason is why nothing is claimed, for people; empty if there is no reason.
	Reason string `json:"reason"`
	// Of the Slots, Busy ones run a task; Stuck ones hold one that does not end.
	Busy   int        `json:"busy"`
	Stuck  int        `json:"stuck"`
	Queues []QueueUse `json:"queues"`
	// Tasks are the ids it holds.
	Tasks []int64 `json:"tasks"`

	// Started, Heartbeat (the last one) and Ended are moments of this incarnation
	// on Redis' clock; zero if that has not happened.
	Started   time.Time `json:"started,omitzero"`
	Heartbeat time.Time `json:"heartbeat,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	// Silent is how long the last heartbeat was ago, on the same clock.
	Silent Seconds `json:"heartbeat_age"`
}

// DisbatchSpec is the version of Disbatch's node specification that the registry follows.
const DisbatchSpec = "1.1"

// QueueType is a class of queues that a worker serves, as Disbatch says it.
type QueueType struct {
	Class   string `json:"class"`
	Version string `json:"version"`
}

// QueueTypes are the classes that a worker offers, name or name=version.
func QueueTypes(classes []string) []QueueType {
	types := make([]QueueType, len(classes))
	for i, class := range classes {
		types[i].Class, types[i].Version, _ = strings.Cut(class, "=")
	}
	return types
}

// Doing is the state for people, with an order that it does not show yet.
func (w *Worker) Doing() string {
	state := string(w.State)
	switch {
	case w.Order == CommandStop && w.State.Alive():
		state += " (stop ordered)"
	case w.Order == CommandDrain && w.State != WorkerDraining && w.State != WorkerDrained:
		state += " (drain ordered)"
	}
	return state
}

// QueueUse is a worker's use of one queue.
type QueueUse struct {
	Class string `json:"class"`
	Queue string `json:"queue"`
	// Threads is the number of slots that may serve it; of these Idle ones do
	// nothing, and Processing is the number of its tasks at work.
	Threads    int `json:"threads"`
	Idle       int `json:"idle"`
	Processing int `json:"processing"`
}
