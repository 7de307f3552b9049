package why

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Situation is a task, or a queue, and what is around it at one moment.
type Situation struct {
	// Now is the moment by the time of the namespace. start_after and end_before mean
	// TIME of Redis; Clock says how far that is behind, and when it has stepped last.
	Now   statemachine.Time
	Clock conn.Step
	// Task is the task as decisions need it, Record all that is known of it. A queue
	// is explained without them.
	Task   tasks.TaskHeader
	Record task.Task
	// Unlisted open tasks are not in line yet: another client opened them.
	Unlisted bool
	// Plan is the plan of a blocked task. FailedStep is what the task is called there
	// because of which it holds.
	Plan       task.Plan
	FailedStep string
	// Needs are the tasks that it still waits for. HandHeld says that an operator
	// holds it, and not only its plan: the task of no plan that is blocked always is.
	Needs    []Need
	HandHeld bool
	// Cause is the task because of which it never runs, or never ran, as long as
	// there is a record of that.
	Cause *task.Task
	// Queues, Nodes and Workers are all there are, workers with the Reason, State and
	// Busy of [Seen]. A queue or a node that is not among them has no attributes, and
	// nothing runs there.
	Queues  []task.Queue
	Nodes   []task.Node
	Workers []task.Worker
	// Claims makes dry claims.
	Claims func([]tasks.DryClaim) ([]tasks.Hindrance, error)
	// Grace is how long servers leave an overdue round to its worker.
	Grace statemachine.Duration
	// ServerSeen is when a server last worked; 0 if that is not known.
	ServerSeen statemachine.Time
}

// Need is a task that another one waits for; of one that was retried, the last.
type Need struct {
	ID int64
	// Step is what it is called in the plan, empty for nothing.
	Step string
	// State is where it is, empty without a record; On says which end is enough.
	State statemachine.State
	On    task.When
}

// declined reports whether the worker, in this session, has handed the task back for want of a handler of its program.
func (s *Situation) declined(w *task.Worker) bool {
	return w.State.Alive() && slices.ContainsFunc(s.Record.Rounds, func(r task.Round) bool {
		return r.Class == statemachine.ClassHandler && r.Worker == w.Name && r.Incarnation == w.Incarnation
	})
}

// Seen is a worker as an explanation sees it, of which a heartbeat is due within the lease. Busy are all slots without
// room for a task, and its reason does not say its state once more.
func Seen(w task.Worker, now statemachine.Time, lease statemachine.Duration) task.Worker {
	w.Busy = max(w.Busy, len(w.Tasks)) + w.Stuck
	if w.State == task.WorkerDraining || w.State == task.WorkerDrained || strings.HasPrefix(w.Reason, fleet.ReasonQuarantined) {
		w.Reason = ""
	}
	if w.State == task.WorkerReady && w.Order != task.NoCommand {
		w.State = task.WorkerDraining // it has not heard of it yet
	}
	if w.State.Alive() && w.Reason == "" && now.Sub(task.Stamp(w.Heartbeat)) > lease {
		w.Reason = "its lease is over, a server will call it lost"
	}
	return w
}

// free is the number of slots without a task.
func free(w *task.Worker) int { return max(0, w.Slots-w.Busy-w.Stuck) }

// freeText says how many they are.
func freeText(w *task.Worker) string { return things(int64(free(w)), "free slot", "free slots") }

// placed is a worker by its name and its node.
func placed(w *task.Worker) string { return "worker " + w.Name + " on " + w.Node }

// at is the moment at which the task may be claimed at the earliest: now, or
// when it becomes due.
func (s *Situation) at() statemachine.Time {
	if s.Task.StartAfter > s.redis() {
		return max(s.Now, s.Task.StartAfter.Add(s.ahead()), s.Task.NotBefore)
	}
	return max(s.Now, s.Task.Due())
}

// ahead is how far the time of the namespace is ahead of TIME of Redis.
func (s *Situation) ahead() statemachine.Duration { return timing.FromStd(s.Clock.Ahead) }

// redis is TIME of Redis now.
func (s *Situation) redis() statemachine.Time { return s.Now.Add(-s.ahead()) }

// entered is when the task came to its state; 0 if that is not known.
func (s *Situation) entered() statemachine.Time {
	t := &s.Task
	if t.State == statemachine.Open && t.Round == 0 && t.StartAfter > 0 && s.stamp(statemachine.Blocked) == 0 {
		return t.StartAfter // its place in line begins at a start that was given, also a past one
	}
	return s.stamp(t.State)
}

// stamp is when the round that the task is in came to a state; 0 if that is not known.
func (s *Situation) stamp(state statemachine.State) statemachine.Time {
	for _, r := range s.Record.Rounds {
		if r.Number == s.Task.Round {
			return task.Stamp(r.Stamps[string(state)])
		}
	}
	return 0
}

// lastEnded returns the last round of a task that has ended, or nil.
func lastEnded(t *task.Task) *task.Round {
	for i := range slices.Backward(t.Rounds) {
		r := &t.Rounds[i]
		if over := r.Number < t.Round || t.State.Terminal(); over && r.Begun() {
			return r
		}
	}
	return nil
}

// saidBy is who did the thing last, as the log says: "held by name: reason".
func (s *Situation) saidBy(thing string) string {
	for _, line := range slices.Backward(s.Record.Log) {
		if i := strings.LastIndex(line.Text, thing); i >= 0 {
			name, _, _ := strings.Cut(line.Text[i+len(thing):], ":")
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// cancelled is by whom it was called off, or a stop was asked for.
func (s *Situation) cancelled() string {
	return with(" by ", cmp.Or(s.saidBy("stop asked for by "), s.saidBy("cancelled by ")))
}

// queue is the queue of that name, or one without attributes.
func (s *Situation) queue(name string) task.Queue {
	if i := slices.IndexFunc(s.Queues, func(q task.Queue) bool { return q.Name == name }); i >= 0 {
		return s.Queues[i]
	}
	return task.ParseQueue(name, nil).Empty()
}

// node is the node of that name, or one of which nothing is known.
func (s *Situation) node(name string) task.Node {
	if i := slices.IndexFunc(s.Nodes, func(n task.Node) bool { return n.Name == name }); i >= 0 {
		return s.Nodes[i]
	}
	return task.ParseNode(name, nil).Idle()
}

// alive are the workers that are there.
func (s *Situation) alive() []task.Worker {
	return slices.DeleteFunc(slices.Clone(s.Workers), func(w task.Worker) bool { return !w.State.Alive() })
}
