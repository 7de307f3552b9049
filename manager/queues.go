package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// NoLimit is the limit that is never reached (text: unlimited). 0 lets nothing new
// begin.
const NoLimit = int(task.NoLimit)

// DefaultQueue is the queue of tasks that do not name one. It always exists.
const DefaultQueue = task.DefaultQueue

// The orders of a queue.
const (
	OrderFifo = string(task.Fifo) // of two tasks of the same effective priority, the older first (the default)
	OrderLifo = string(task.Lifo) // the newer first
)

// Queue is a queue (Disbatch) and what lies in it.
type Queue struct {
	Name, Description string
	// Class is what a worker must offer to take from the queue; empty for none.
	Class string
	// Threads is how many tasks of the queue may run at a time in the whole fleet,
	// MaxThreads on each node (see NoLimit).
	Threads, MaxThreads int
	// Pin are the only nodes that take from the queue, Ignore those that do not.
	// With both, Pin counts.
	Pin, Ignore []string
	// Paused queues are not taken from.
	Paused bool
	// Order is OrderFifo or OrderLifo.
	Order string
	// Aging is how long a task waits for one point of priority; 0 for never.
	Aging time.Duration
	// Defaults are values of tasks that do not give their own, by name (see [QueueKeys]).
	Defaults map[string]string
	// Created is when the queue was made; zero if that is not known.
	Created time.Time
	// Damaged says what of the queue's record cannot be read; empty for nothing.
	// Nothing is taken from such a queue until these attributes are set anew.
	Damaged string

	// Waiting tasks are open, whenever they start; Due ones may start now, the
	// Oldest of them since that moment (zero if there is none).
	Waiting, Due int64
	Oldest       time.Time
	// Running is the number of rounds under way, RunningByNode the same by node.
	Running       int64
	RunningByNode map[string]int64
	// Ended counts the tasks that came to each outcome since the queue exists.
	Ended map[statemachine.State]int64
}

// QueueKeys are the names that [Manager.AddQueue] and [Manager.SetQueue] know:
// description, class, threads, maxthreads, nodes_pin, nodes_ignore, paused, order,
// aging, and default_NAME for each value that a queue can give to its tasks.
func QueueKeys() []string { return task.QueueKeys() }

// Queues lists the queues by name.
func (m *Manager) Queues(ctx context.Context) ([]Queue, error) {
	found, _, err := m.store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	queues := make([]Queue, len(found))
	for i := range found {
		queues[i] = newQueue(&found[i])
	}
	return queues, nil
}

// Queue returns one queue. The error matches [ErrNoQueue] if there is none of
// that name.
func (m *Manager) Queue(ctx context.Context, name string) (Queue, error) {
	found, err := m.store.Queue(ctx, name)
	if err != nil {
		return Queue{}, err
	}
	return newQueue(&found), nil
}

func newQueue(q *store.QueueInfo) Queue {
	queue := attributesOf(&q.Queue)
	queue.Waiting, queue.Due, queue.Running = q.Waiting, q.Due, q.Running
	queue.Oldest, queue.RunningByNode, queue.Ended = momentOf(q.Oldest), q.Nodes, map[statemachine.State]int64{}
	for _, outcome := range statemachine.Outcomes() {
		if n := q.Ended[outcome]; n > 0 {
			queue.Ended[outcome] = n
		}
	}
	return queue
}

// attributesOf is a queue without what lies in it.
func attributesOf(q *task.Queue) Queue {
	return Queue{
		Name: q.Name, Description: q.Description, Class: q.Class,
		Threads: int(q.Threads), MaxThreads: int(q.MaxThreads), Pin: q.Pin, Ignore: q.Ignore,
		Paused: q.Paused, Order: string(q.Order), Aging: spanOf(q.Aging), Defaults: q.Defaults,
		Created: momentOf(q.Created), Damaged: q.Damaged.Text(),
	}
}

// spanOf is Forever where there is no end.
func spanOf(d statemachine.Duration) time.Duration {
	if d > statemachine.Duration(task.Forever/time.Microsecond) {
		return task.Forever
	}
	return time.Duration(d) * time.Microsecond
}

// AddQueue makes a queue with the attributes of set (see [QueueKeys]) and
// returns it. Without a name it gets one of its own. The error matches
// [ErrQueueExists] if there is one of that name, or is a *statemachine.FieldError.
func (m *Manager) AddQueue(ctx context.Context, name string, set map[string]string, opts ...ChangeOption) (Queue, error) {
	c, err := m.changing(opts)
	if err != nil {
		return Queue{}, err
	}
	generated := name == ""
	for {
		if generated {
			name = newQueueName()
		}
		q := task.NewQueue(name)
		if err := errors.Join(task.CheckQueueName(name), setAll(&q, set)); err != nil {
			return Queue{}, err
		}
		err := m.addQueue(ctx, &q, c)
		if err == nil {
			return attributesOf(&q), nil
		}
		if !generated || !errors.Is(err, ErrQueueExists) {
			return Queue{}, err
		}
	}
}

// newQueueName makes a name that nobody else makes.
func newQueueName() string { return "q-" + strings.ToLower(rand.Text()[:10]) }

func (m *Manager) addQueue(ctx context.Context, q *task.Queue, c changing) error {
	if c.dry {
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
	m.log.Info("added queue", "queue", q.Name, "by", c.by)
	return nil
}

// SetQueue changes attributes of a queue (see [QueueKeys]), all of them or, with
// an error, none. The empty value brings the default of an attribute back. It
// returns the queue as it is then. Lowering a limit stops nothing that runs.
func (m *Manager) SetQueue(ctx context.Context, name string, set map[string]string, opts ...ChangeOption) (Queue, error) {
	c, err := m.changing(opts)
	if err != nil {
		return Queue{}, err
	}
	if c.dry {
		found, err := m.store.Queue(ctx, name)
		if err == nil {
			err = setAll(&found.Queue, set)
		}
		if err == nil {
			err = found.Damaged.Err()
		}
		return newQueue(&found), err
	}
	change := func(q *task.Queue) error { return setAll(q, set) }
	if _, err := m.store.SetQueue(ctx, name, change); err != nil {
		return Queue{}, err
	}
	m.log.Info("changed queue", "queue", name, "by", c.by, "set", set)
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
func (m *Manager) RemoveQueue(ctx context.Context, name string, opts ...ChangeOption) error {
	c, err := m.changing(opts)
	if err != nil {
		return err
	}
	if name == DefaultQueue {
		return fieldError("queue", name, "a queue that can go; the default queue is always there, pause it instead")
	}
	if err := m.queueFree(ctx, name); err != nil || c.dry {
		return err
	}
	if err := m.store.RemoveQueue(ctx, name); err != nil {
		return err
	}
	m.log.Info("removed queue", "queue", name, "by", c.by)
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
