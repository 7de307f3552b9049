package why

import (
	"slices"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Situation is a task, or a queue, and what is around it at one moment.
type Situation struct {
	// Now is the moment by the time of the namespace, which is ahead of TIME of
	// Redis by Ahead: start_after and end_before mean that.
	Now   statemachine.Time
	Ahead statemachine.Duration
	// Stepped is when TIME has stepped last, and StepBy how far; 0 for never.
	Stepped statemachine.Time
	StepBy  statemachine.Duration
	Task    Task
	// Queues, Nodes and Workers are all there are. A queue or a node that is not
	// among them has no attributes, and nothing runs there.
	Queues  []task.Queue
	Nodes   []task.Node
	Workers []Worker
	// Claims makes dry claims.
	Claims func([]tasks.DryClaim) ([]tasks.Hindrance, error)
	// Grace is how long servers leave an overdue round to its worker.
	Grace statemachine.Duration
	// ServerSeen is when a server last worked; 0 if that is not known.
	ServerSeen statemachine.Time
}

// Task is what is known of the task.
type Task struct {
	statemachine.Task
	Bucket  task.Bucket
	Program string
	// Worker and Node are those of the current round.
	Worker, Node string
	// Since is when the task came to its state; 0 if that is not known.
	Since statemachine.Time
	// HoldReason and CancelReason are what the operators said; HeldBy and
	// CancelledBy are their names. StopAsked (of the task) began at StopSince.
	HoldReason, HeldBy        string
	CancelReason, CancelledBy string
	StopSince                 statemachine.Time
	// Rounds are those that have ended, the oldest first, as far as known.
	Rounds []task.Round
	// RetryOf is the task this one repeats, RetriedBy the one that repeats it.
	RetryOf, RetriedBy int64
	// Plan is the plan it belongs to; with ID 0 it belongs to none.
	Plan Plan
	// Needs are the tasks that it still waits for. HandHeld says that an operator
	// holds it, and not only its plan: the task of no plan that is blocked always is.
	Needs    []Need
	HandHeld bool
	// Cause is the task because of which it never runs, or never ran.
	Cause Cause
	// Unlisted open tasks are not in line yet: another client opened them.
	Unlisted bool
}

// Worker is a worker as the registry knows it.
type Worker struct {
	task.Offer
	State task.WorkerState
	// Incarnation is its session.
	Incarnation int64
	// Reason is why it claims nothing, in its own words; empty if it does.
	Reason string
	// Busy of its Slots are taken.
	Slots, Busy int
	// Heartbeat is the last one; 0 if there was none.
	Heartbeat statemachine.Time
	// Serving are the queues it works for, with the number of their tasks, as its
	// last heartbeat says.
	Serving map[string]int
}

// Alive reports whether the worker counts as being there.
func (w *Worker) Alive() bool { return w.State.Alive() }

// declined reports whether the worker, in this session, has handed the task back for want of a handler of its program.
func (s *Situation) declined(w *Worker) bool {
	return w.Alive() && slices.ContainsFunc(s.Task.Rounds, func(r task.Round) bool {
		return r.Class == statemachine.ClassHandler && r.Worker == w.Worker && r.Incarnation == w.Incarnation
	})
}

// Free is the number of slots without a task.
func (w *Worker) Free() int { return max(0, w.Slots-w.Busy) }

// At is the moment at which the task may be claimed at the earliest: now, or
// when it becomes due.
func (s *Situation) At() statemachine.Time { return max(s.Now, s.due()) }

// due is the moment from which the task may be claimed, by the time of the namespace.
func (s *Situation) due() statemachine.Time {
	if s.Task.StartAfter > s.redis() {
		return max(s.Task.StartAfter.Add(s.Ahead), s.Task.NotBefore)
	}
	return s.Task.Due()
}

// redis is TIME of Redis now.
func (s *Situation) redis() statemachine.Time { return s.Now.Add(-s.Ahead) }

// queue is the queue of that name, or one without attributes.
func (s *Situation) queue(name string) task.Queue {
	if i := slices.IndexFunc(s.Queues, func(q task.Queue) bool { return q.Name == name }); i >= 0 {
		return s.Queues[i]
	}
	return task.NewQueue(name).Empty()
}

// node is the node of that name, or one of which nothing is known.
func (s *Situation) node(name string) task.Node {
	if i := slices.IndexFunc(s.Nodes, func(n task.Node) bool { return n.Name == name }); i >= 0 {
		return s.Nodes[i]
	}
	return task.NewNode(name).Idle()
}

// alive are the workers that are there.
func (s *Situation) alive() []Worker {
	var found []Worker
	for i := range s.Workers {
		if s.Workers[i].Alive() {
			found = append(found, s.Workers[i])
		}
	}
	return found
}
