package manager

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Queues lists the queues by name.
func (m *Manager) Queues(ctx context.Context) ([]task.Queue, error) {
	queues, _, err := m.store.Queues(ctx)
	return queues, err
}

// Queue returns one queue. The error matches [task.ErrNoQueue] if no queue has
// that name.
func (m *Manager) Queue(ctx context.Context, name string) (task.Queue, error) {
	return m.store.Queue(ctx, name)
}

// AddQueue makes a queue and returns it, complete. Without a name it gets one of its
// own. The error matches [task.ErrQueueExists] if there is one of that name, or is that of
// [task.QueueSpec.Complete].
func (m *Manager) AddQueue(ctx context.Context, q task.QueueSpec, o ChangeOptions) (task.Queue, error) {
	o, err := m.complete(o)
	if err != nil {
		return task.Queue{}, err
	}
	q.Name = cmp.Or(q.Name, "q-"+strings.ToLower(rand.Text()[:10])) // nobody else makes it
	q.Created = time.Time{}
	if q, err = q.Complete(); err != nil {
		return task.Queue{}, err
	}
	if err := m.addQueue(ctx, &q, o); err != nil {
		return task.Queue{}, err
	}
	return q.Empty(), nil
}

func (m *Manager) addQueue(ctx context.Context, q *task.QueueSpec, o ChangeOptions) error {
	if o.DryRun {
		_, err := m.store.Queue(ctx, q.Name)
		switch {
		case err == nil:
			return fmt.Errorf("queue %q: %w", q.Name, task.ErrQueueExists)
		case errors.Is(err, task.ErrNoQueue):
			return nil
		default:
			return err
		}
	}
	if err := m.store.AddQueue(ctx, *q); err != nil {
		return err
	}
	m.did(o, "added queue", "queue", q.Name)
	return m.note(ctx, o, "queue add", []string{q.Name}, nil)
}

// SetQueue applies change to a queue and returns the queue as it is then. With an error
// nothing changes: it matches [task.ErrNoQueue], or is that of change or of
// [task.QueueSpec.Complete]. If others change a queue meanwhile, change is called again
// with what they made of it. Name and Created cannot be changed. A lower limit stops
// nothing that runs.
func (m *Manager) SetQueue(ctx context.Context, name string, change func(*task.QueueSpec) error, o ChangeOptions) (task.Queue, error) {
	o, err := m.complete(o)
	if err != nil {
		return task.Queue{}, err
	}
	if o.DryRun {
		found, err := m.store.Queue(ctx, name)
		if err == nil {
			found.QueueSpec, err = fleet.ChangedQueue(found.QueueSpec, change)
		}
		return found, err
	}
	after, err := m.store.SetQueue(ctx, name, change)
	if err != nil {
		return task.Queue{}, err
	}
	m.did(o, "changed queue", "queue", name, "to", after.Fields())
	if err := m.note(ctx, o, "queue set", []string{name}, nil); err != nil {
		return task.Queue{}, err
	}
	return m.Queue(ctx, name)
}

// RemoveQueue removes a queue. While the queue has tasks that have not ended, blocked
// ones included, the error matches [task.ErrQueueInUse] and says how many.
func (m *Manager) RemoveQueue(ctx context.Context, name string, o ChangeOptions) error {
	o, err := m.complete(o)
	if err != nil {
		return err
	}
	if name == task.DefaultQueue {
		return fieldError("queue", name, "a queue that can go; the default queue is always there, pause it instead")
	}
	if err := m.queueFree(ctx, name); err != nil || o.DryRun {
		return err
	}
	if err := m.store.RemoveQueue(ctx, name); err != nil {
		return err
	}
	m.did(o, "removed queue", "queue", name)
	return m.note(ctx, o, "queue rm", []string{name}, nil)
}

// queueFree returns an error if the queue has tasks that have not ended. The
// store knows those that wait or run; the others are counted here.
func (m *Manager) queueFree(ctx context.Context, name string) error {
	q, err := m.store.Queue(ctx, name)
	if err != nil {
		return err
	}
	quiet := map[statemachine.State]int{}
	sel := Selection{States: []statemachine.State{statemachine.Blocked, statemachine.Executed}, Queue: name}
	for t, err := range m.Select(ctx, sel) {
		if err != nil {
			return err
		}
		quiet[t.State]++
	}
	if q.Waiting+q.Running > 0 || len(quiet) > 0 {
		return fmt.Errorf("queue %q has %d open, %d blocked, %d running and %d executed tasks: %w", name,
			q.Waiting, quiet[statemachine.Blocked], q.Running, quiet[statemachine.Executed], task.ErrQueueInUse)
	}
	return nil
}
