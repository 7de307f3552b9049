package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Queues lists the queues by name.
func (m *Manager) Queues(ctx context.Context) ([]task.Queue, error) {
	queues, _, err := m.store.Queues(ctx)
	return queues, err
}

// Queue returns one queue. The error matches [ErrNoQueue] if no queue has
// that name.
func (m *Manager) Queue(ctx context.Context, name string) (task.Queue, error) {
	return m.store.Queue(ctx, name)
}

// AddQueue makes a queue with the attributes of set (see [task.QueueKeys]) and
// returns it. Without a name it gets one of its own. The error matches
// [ErrQueueExists] if there is one of that name, or is a *statemachine.FieldError.
func (m *Manager) AddQueue(ctx context.Context, name string, set map[string]string, o ChangeOptions) (task.Queue, error) {
	o, err := m.complete(o)
	if err != nil {
		return task.Queue{}, err
	}
	if name == "" {
		name = "q-" + strings.ToLower(rand.Text()[:10]) // nobody else makes it
	}
	q := task.NewQueue(name)
	if err := errors.Join(task.CheckQueueName(name), setAll(&q, set)); err != nil {
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
			return fmt.Errorf("queue %q: %w", q.Name, ErrQueueExists)
		case errors.Is(err, ErrNoQueue):
			return nil
		default:
			return err
		}
	}
	if err := m.store.AddQueue(ctx, *q); err != nil {
		return err
	}
	m.did(o, "added queue", "queue", q.Name)
	return nil
}

// SetQueue changes attributes of a queue (see [task.QueueKeys]), all of them or, with
// an error, none. The empty value brings the default of an attribute back. It
// returns the queue as it is then. Lowering a limit stops nothing that runs.
func (m *Manager) SetQueue(ctx context.Context, name string, set map[string]string, o ChangeOptions) (task.Queue, error) {
	o, err := m.complete(o)
	if err != nil {
		return task.Queue{}, err
	}
	if o.DryRun {
		found, err := m.store.Queue(ctx, name)
		if err == nil {
			err = setAll(&found, set)
		}
		if err == nil {
			err = found.Damaged.Err()
		}
		return found, err
	}
	change := func(q *task.QueueSpec) error { return setAll(q, set) }
	if _, err := m.store.SetQueue(ctx, name, change); err != nil {
		return task.Queue{}, err
	}
	m.did(o, "changed queue", "queue", name, "set", set)
	return m.Queue(ctx, name)
}

// setAll works in the order of the names, so that the same input has the same error.
func setAll[T interface {
	Set(name, value string) error
}](to T, set map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if err := to.Set(name, set[name]); err != nil {
			return err
		}
	}
	return nil
}

// RemoveQueue takes a queue away. The error matches [ErrQueueInUse], and says
// how many, while it has tasks that have not ended; blocked ones count.
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
	return nil
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
	for page, err := range m.Select(ctx, sel, 0) {
		if err != nil {
			return err
		}
		for i := range page {
			quiet[page[i].State]++
		}
	}
	if q.Waiting+q.Running > 0 || len(quiet) > 0 {
		return fmt.Errorf("queue %q has %d open, %d blocked, %d running and %d executed tasks: %w", name,
			q.Waiting, quiet[statemachine.Blocked], q.Running, quiet[statemachine.Executed], ErrQueueInUse)
	}
	return nil
}
