// Package answer makes what a verb answers: the values that the command line prints as JSON, and HTTP serves.
// It also reads the objects from which both open tasks.
package answer

import (
	"context"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// Totals count the tasks of a namespace.
type Totals struct {
	Namespace string         `json:"namespace"`
	States    manager.Counts `json:"states"`
	// Ended are the tasks that came to each outcome since their queues were made, Retried those of them that were retried.
	Ended   manager.Counts `json:"ended"`
	Retried int64          `json:"retried"`
	Total   int64          `json:"total"`
	Left    int64          `json:"left"`
}

// Count counts the tasks, those that have left Redis included.
func Count(ctx context.Context, m *manager.Manager) (*Totals, error) {
	all, err := m.Count(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := m.Queues(ctx)
	if err != nil {
		return nil, err
	}
	o := manager.Overview{Queues: queues}
	return &Totals{
		Namespace: m.Namespace(), States: all, Ended: o.Ended(), Retried: Retried(queues), Total: all.Total(), Left: all.Left(),
	}, nil
}

// Retried is how many tasks of the queues were retried.
func Retried(queues []task.Queue) (n int64) {
	for i := range queues {
		n += queues[i].Retried
	}
	return n
}

// Explained is why a task, or what waits in a queue, does not run.
type Explained struct {
	ID      int64               `json:"id,omitempty"`
	Queue   string              `json:"queue,omitempty"`
	Blocked bool                `json:"blocked"`
	Reasons manager.Explanation `json:"reasons"`
}

// Why is [manager.Manager.Why] of a task.
func Why(ctx context.Context, m *manager.Manager, id int64) (*Explained, error) {
	reasons, err := m.Why(ctx, id)
	return &Explained{ID: id, Blocked: reasons.Blocked(), Reasons: clean.List(reasons)}, err
}

// WhyQueue is [manager.Manager.WhyQueue] of a queue.
func WhyQueue(ctx context.Context, m *manager.Manager, name string) (*Explained, error) {
	reasons, err := m.WhyQueue(ctx, name)
	return &Explained{Queue: name, Blocked: reasons.Blocked(), Reasons: clean.List(reasons)}, err
}

// Events are those of one task.
type Events struct {
	ID int64 `json:"id"`
	// From is the number of the oldest change of the namespace that is recorded.
	From   int64   `json:"from"`
	Events []Event `json:"events"`
}

// Event has the time in seconds, as Redis has it.
type Event struct {
	task.Event

	At string `json:"at"`
}

// History is [manager.Manager.EventsOf] a task.
func History(ctx context.Context, m *manager.Manager, id int64) (*Events, error) {
	found, from, err := m.EventsOf(ctx, id)
	h := &Events{ID: id, From: from, Events: make([]Event, len(found))}
	for i, e := range found {
		h.Events[i] = Event{e, task.Stamp(e.At).Text()}
	}
	return h, err
}

// Replayed says which task repeats a round of another one.
type Replayed struct {
	ID     int64 `json:"id"`
	Replay int64 `json:"replay,omitempty"`
	DryRun bool  `json:"dry_run"`
}

// Compared is a replay beside what it repeats.
type Compared struct {
	manager.Comparison

	Same bool `json:"same"`
	// TimedOut says that the wait for its end was over before.
	TimedOut bool `json:"timed_out"`
}
