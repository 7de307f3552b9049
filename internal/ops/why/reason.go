package why

import "github.com/tdf-go/tdf/internal/route"

// Kind is what a reason is about. docs/WHY.md tells them to users.
type Kind string

// The kinds of reasons for a task that has not been claimed.
const (
	KindClaimable Kind = "claimable" // nothing is in the way
	KindHeld      Kind = "held"      // an operator holds it
	KindPlan      Kind = "plan"      // its plan is not ready
	KindNeeds     Kind = "needs"     // tasks that it needs have not ended
	KindDoomed    Kind = "doomed"    // it never runs, because of a task that it needs
	KindStart     Kind = "start"     // its start_after has not come
	KindBackoff   Kind = "backoff"   // it rests after a failure
	KindLate      Kind = "late"      // its end_before has passed, or will before it may start
	KindUnlisted  Kind = "unlisted"  // no server has taken it over from another client yet
	KindPaused    Kind = "paused"    // its queue is paused
	KindNoWorker  Kind = "no_worker" // no worker is alive
	KindAway      Kind = "away"      // the worker that fits is lost or stopped
	KindUnfit     Kind = "unfit"     // no worker comes near
	KindPinned    Kind = "pinned"    // its queue is for other nodes
	KindIgnored   Kind = "ignored"   // its queue is not for this node
	KindClass     Kind = "class"     // the worker does not serve the class of its queue
	KindEnv       Kind = "env"       // the worker has another env
	KindLabel     Kind = "label"     // the worker does not offer a label
	KindResource  Kind = "resource"  // the node has less of a resource in all
	KindHandler   Kind = "handler"   // the worker has no Go function of its program's name
	KindDrain     Kind = "drain"     // the worker that fits drains
	KindClaimsNot Kind = "claims_nothing"
	KindSlots     Kind = "slots"      // all its slots are busy
	KindThreads   Kind = "threads"    // the limit of the queue in the fleet is reached
	KindMax       Kind = "maxthreads" // the limit of the queue on the node is reached
	KindNodeCap   Kind = "node_cap"   // the limit of the node over all queues is reached
	KindGate      Kind = "quarantine" // the node is set aside, or waits to be judged
	KindTaken     Kind = "taken"      // other tasks have the resource just now
	KindKept      Kind = "kept"       // the resource is kept for a task before it
	KindLine      Kind = "line"       // tasks are before it
	KindOther     Kind = "other"      // what another worker that fits lacks
	KindClock     Kind = "clock"      // the clock of Redis has stepped
)

// The kinds of reasons for tasks that have been claimed, and for queues.
const (
	KindRunning  Kind = "running"
	KindSilent   Kind = "silent"  // its worker has not been heard of
	KindTimeout  Kind = "timeout" // when its round is over
	KindStop     Kind = "stop"    // it is to be stopped
	KindServer   Kind = "server"  // it waits for a server
	KindCause    Kind = "cause"   // the task that it needs because of which it never ran
	KindOutcome  Kind = "outcome" // how it ended, and by which rule
	KindRound    Kind = "round"   // how its last round ended
	KindRetried  Kind = "retried" // which task repeats it
	KindArchived Kind = "archived"
	KindWaiting  Kind = "waiting" // how many tasks wait in the queue
	KindServed   Kind = "served"  // a worker that may take from the queue
)

// Reason is one thing to say about a task or a queue.
type Reason struct {
	Kind Kind
	// Text is for people: a clause without a full stop.
	Text string
	// Blocks says that the task is not claimed as long as this holds.
	Blocks bool
	// Change would take the reason away; the zero Remedy if nothing would.
	Change Remedy
}

// Object is what a remedy changes.
type Object string

// The objects.
const (
	ObjectTask   Object = "task"
	ObjectPlan   Object = "plan"
	ObjectQueue  Object = "queue"
	ObjectWorker Object = "worker"
	ObjectNode   Object = "node"
	ObjectServer Object = "server"
	ObjectTime   Object = "time"
)

// The attributes of objects that a remedy sets, where they are not attributes of
// queues and nodes by their own names, or words of a worker's offer.
const (
	AttrNow       = "now"        // of time: seconds since 1970, to be waited for
	AttrHold      = "hold"       // of a task: "" releases it; of a plan: "" resumes it
	AttrNeeds     = "needs"      // of a task: "" once all that it needs have ended
	AttrReady     = "ready"      // of a plan: true once it has been built
	AttrRetry     = "retry"      // of a plan: the task that failed
	AttrSubmit    = "submit"     // of a plan: a new one, because it was called off
	AttrBefore    = "before"     // of a task: how many are claimed before it
	AttrEndBefore = "end_before" // of a task
	AttrListed    = "listed"     // of a task: true once a server has taken it over
	AttrState     = "state"      // of a worker: ready
	AttrHandlers  = "handlers"   // of a worker: the name of one more Go function
	AttrReason    = "reason"     // of a worker: "" once it claims again
	AttrFreeSlots = "free_slots" // of a worker: how many more slots have to be free
	AttrStart     = "start"      // of a worker: a new one with this offer
	AttrFree      = "free"       // of a node: name=number, how much more of a resource has to be free
	AttrGate      = "quarantine" // of the server
)

// Remedy is a change that takes a reason away: the attribute of the object is to
// have the value.
type Remedy struct {
	Object Object
	// Name is which one; empty for the time, the server, and a worker to start.
	Name      string
	Attribute string
	Value     string
	// Offer is, for AttrStart, what the worker must offer. An empty node is any
	// that the queue does not avoid.
	Offer route.Offer
}

// Zero reports whether there is nothing to change.
func (r *Remedy) Zero() bool { return r.Object == "" }

// Explanation are the reasons, the most important first.
type Explanation []Reason

// Blocked reports whether a reason blocks.
func (e Explanation) Blocked() bool {
	for i := range e {
		if e[i].Blocks {
			return true
		}
	}
	return false
}
