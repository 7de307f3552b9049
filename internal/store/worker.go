package store

import (
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

// WorkerState is what a worker does, as the registry shows it.
type WorkerState string

// The states of a worker. The first three are the worker's own word; a server
// says lost, and a worker that has left in good order says stopped.
const (
	WorkerReady    WorkerState = "ready"
	WorkerDraining WorkerState = "draining" // claims nothing, still runs something
	WorkerDrained  WorkerState = "drained"  // claims nothing, runs nothing
	WorkerLost     WorkerState = "lost"
	WorkerStopped  WorkerState = "stopped"
)

// WorkerOrder is what an operator wants of a worker.
type WorkerOrder string

// The orders. OrderDrain stays with the name until OrderNone replaces it;
// OrderStop is forgotten when the worker registers anew.
const (
	OrderNone  WorkerOrder = ""
	OrderDrain WorkerOrder = "drain"
	OrderStop  WorkerOrder = "stop"
)

// Registration is what a worker says of itself at its start (Disbatch: node
// registration).
type Registration struct {
	Name string
	// Node is the name of the host in records, Host the host's own name.
	Node, Host string
	PID        int
	// Identity says which start of which process of which boot of which host this
	// is, so that a successor on the same host can tell that it is gone, and so
	// that a registration whose answer was lost is recognised. Required.
	Identity    string
	Version     string
	Containment string
	Slots       int
	Labels      []string
	// Env, Resources, Classes and MaxThreads are what the worker offers beside
	// its labels (see route.Offer).
	Env        string
	Resources  route.Resources
	Classes    []string
	MaxThreads route.Limit
	// Replaces is the incarnation that the caller knows to be dead, although no
	// server has said so: that of a process of this host that is gone, one whose
	// heartbeat the caller has seen stand still for one full lease by its own
	// clock, or the caller's own session that it gives up. 0 for none.
	Replaces int64
}

// Session is a registered worker. Its lease ends if it is not renewed.
type Session struct {
	Name string
	// ID stays with the name; Incarnation is raised by each registration.
	ID, Incarnation int64
	// Lease is how long the worker may be silent.
	Lease statemachine.Duration
	// Order is what an operator has ordered for the name.
	Order WorkerOrder
}

// Registered is the answer to a registration.
type Registered struct {
	Session
	// Former are tasks that an earlier incarnation still holds. While there are
	// any the worker is not registered: move them (event Lose) and register again.
	Former []Seen
	Now    statemachine.Time
}

// QueueUse is a worker's use of one queue (Disbatch: queue heartbeat object).
type QueueUse struct {
	Class      string `json:"class"`
	Queue      string `json:"queue"`
	Threads    int    `json:"threads"`
	Idle       int    `json:"idle"`
	Processing int    `json:"processing"`
}

// ReasonSetAside begins the reason of a worker whose node is set aside.
const ReasonSetAside = "the node is set aside"

// Heartbeat is what a worker says of itself when it renews its lease.
type Heartbeat struct {
	State WorkerState
	// Reason is why nothing is claimed, for people; empty if there is no reason.
	Reason string
	// Busy slots run a task; stuck ones hold one that does not end.
	Busy, Stuck int
	Queues      []QueueUse
}

// Renewal is the answer to a heartbeat.
type Renewal struct {
	Lease statemachine.Duration
	Order WorkerOrder
	// Followed are tasks of this worker whose output somebody reads just now.
	Followed []Followed
	// Stops are tasks of this worker that are to be stopped (see [Store.AskStop]).
	Stops []int64
	// Overdue are those whose time is over, for servers (see [Store.TellOverdue]), at
	// the time Redis by TIME.
	Overdue    []int64
	Now, Redis statemachine.Time
}

// Followed is a task whose output somebody reads. Since is when the last of its
// readers began, who wants it from its beginning.
type Followed struct {
	ID    int64
	Since statemachine.Time
}

// LostWorker is a worker whose lease is over.
type LostWorker struct {
	Name        string
	Incarnation int64
	// Silent is how long it has not been heard of.
	Silent statemachine.Duration
	// Tasks are those it holds, at most the limit of the call.
	Tasks []Seen
	// Err says that the worker's keys are damaged by hand, so that it was not
	// fenced; somebody has to delete the key it names. Else nil.
	Err error
}

// Lost are the workers whose lease is over.
type Lost struct {
	Workers []LostWorker
	// Next is when the next lease ends, or Never.
	Next statemachine.Time
	Now  statemachine.Time
	// Longest is the longest lease of a worker that is silent for whom the caller has
	// not watched long enough, 0 if there is none.
	Longest statemachine.Duration
}

// WorkerInfo is a worker as the registry knows it.
type WorkerInfo struct {
	Registration
	ID, Incarnation int64
	State           WorkerState
	Order           WorkerOrder
	Reason          string
	// Started, Heartbeat and Ended are moments of this incarnation; 0 if not yet.
	Started, Heartbeat, Ended statemachine.Time
	Busy, Stuck               int
	Queues                    []QueueUse
	// Tasks are the ids it holds.
	Tasks []int64
}
