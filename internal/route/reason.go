package route

// Kind is in what respect a task and a worker do not go together.
type Kind string

// The kinds of reasons.
const (
	KindEnv      Kind = "env"      // the task's env is not the worker's
	KindLabel    Kind = "label"    // the worker does not offer a label
	KindResource Kind = "resource" // the node has less in all than the task asks
	KindPinned   Kind = "pinned"   // the queue is for other nodes
	KindIgnored  Kind = "ignored"  // the queue is not for this node
	KindPaused   Kind = "paused"   // the queue is paused
	KindClass    Kind = "class"    // the worker does not serve the queue's class
)

// Reason says why a task must not run at a worker.
type Reason struct {
	Kind Kind
	// Wanted is what the task or its queue demands: an env, a label=value, a
	// name=number, a list of nodes, a class. For KindIgnored it is the list of
	// nodes to avoid, for KindPaused the name of the queue.
	Wanted string
	// Has is what comes nearest to it on the worker's side: its env, the same
	// label or resource with what it has of it, the node, its classes. Empty if
	// there is nothing of the kind. For KindPaused it is what of the queue's
	// record is damaged.
	Has string
}

// String says it in words for people.
func (r Reason) String() string {
	switch r.Kind {
	case KindEnv:
		return "needs env " + r.Wanted + ", the worker has " + orNone(r.Has)
	case KindLabel:
		return "needs label " + r.Wanted + ", the worker offers " + orNone(r.Has)
	case KindResource:
		return "needs resource " + r.Wanted + ", the node has " + orNone(r.Has)
	case KindPinned:
		return "the queue is pinned to " + r.Wanted + ", this is " + orNone(r.Has)
	case KindIgnored:
		return "the queue avoids " + r.Wanted + ", this is " + orNone(r.Has)
	case KindPaused:
		if r.Has != "" {
			return "queue " + r.Wanted + " counts as paused, its record is damaged: " + r.Has
		}
		return "queue " + r.Wanted + " is paused"
	case KindClass:
		return "the queue is of class " + r.Wanted + ", the worker serves " + orNone(r.Has)
	}
	return string(r.Kind) + " " + r.Wanted
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
