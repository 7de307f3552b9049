package manager

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// WorkerState is what a worker does, as the registry shows it.
type WorkerState string

// The states of a worker.
const (
	WorkerReady    WorkerState = "ready"
	WorkerDraining WorkerState = "draining" // claims nothing, still runs something
	WorkerDrained  WorkerState = "drained"  // claims nothing, runs nothing
	WorkerLost     WorkerState = "lost"     // not heard of for longer than its lease; its tasks went back
	WorkerStopped  WorkerState = "stopped"  // has left in good order
)

// Alive reports whether the worker counts as being there.
func (s WorkerState) Alive() bool {
	return s == WorkerReady || s == WorkerDraining || s == WorkerDrained
}

// WorkerOrder is what an operator wants of a worker.
type WorkerOrder string

// The orders.
const (
	NoOrder WorkerOrder = ""
	// OrderDrain stays with the worker's name, over restarts, until it is taken back.
	OrderDrain WorkerOrder = "drain"
	// OrderStop ends this process; started again, the worker works.
	OrderStop WorkerOrder = "stop"
)

// Worker is a worker as the registry knows it.
type Worker struct {
	Name string
	// ID stays with the name; Incarnation is raised by each start.
	ID, Incarnation int64
	// Node is the name of the host in records, Host the host's own name.
	Node, Host           string
	PID                  int
	Version, Containment string
	Labels               []string
	// Env, Resources, Classes and MaxThreads (on the node, over all queues; see
	// NoLimit) are what it offers beside its labels.
	Env        string
	Resources  map[string]int
	Classes    []string
	MaxThreads int

	State WorkerState
	Order WorkerOrder
	// Reason is why nothing is claimed, for people; empty if there is no reason.
	Reason string
	// Of the Slots, Busy ones run a task; Stuck ones hold one that does not end.
	Slots, Busy, Stuck int
	Queues             []QueueUse
	// Tasks are the ids it holds.
	Tasks []int64

	// Started, Heartbeat (the last one) and Ended are moments of this incarnation
	// on Redis' clock; zero if that has not happened.
	Started, Heartbeat, Ended time.Time
	// Silent is how long the last heartbeat was ago, on the same clock.
	Silent time.Duration
}

// QueueUse is a worker's use of one queue (Disbatch: queue heartbeat object).
type QueueUse struct {
	Class, Queue string
	// Threads is the number of slots that may serve it; of these Idle ones do
	// nothing, and Processing is the number of its tasks at work.
	Threads, Idle, Processing int
}

// Workers lists the workers by name, also those that are lost or stopped.
func (m *Manager) Workers(ctx context.Context) ([]Worker, error) {
	found, now, err := m.store.Workers(ctx)
	if err != nil {
		return nil, err
	}
	workers := make([]Worker, len(found))
	for i := range found {
		workers[i] = newWorker(&found[i], now)
	}
	return workers, nil
}

// Worker returns one worker by name. The error matches [ErrNoWorker] if no
// worker has ever had it.
func (m *Manager) Worker(ctx context.Context, name string) (Worker, error) {
	found, now, err := m.store.Worker(ctx, name)
	if err != nil {
		return Worker{}, err
	}
	return newWorker(&found, now), nil
}

// DrainWorker tells a worker to claim nothing more and to finish what it runs.
// The order stays with the name until [Manager.UndrainWorker]. It returns the
// worker as it was; the error matches [ErrNoWorker] if there is none.
func (m *Manager) DrainWorker(ctx context.Context, name string) (Worker, error) {
	return m.order(ctx, name, store.OrderDrain)
}

// UndrainWorker takes the order to drain back. A stop cannot be taken back: the
// worker has begun to end.
func (m *Manager) UndrainWorker(ctx context.Context, name string) (Worker, error) {
	return m.order(ctx, name, store.OrderNone)
}

// StopWorker tells a worker to end as it does on SIGTERM: it finishes what it
// runs within its drain_timeout, hands the rest back, and leaves.
func (m *Manager) StopWorker(ctx context.Context, name string) (Worker, error) {
	return m.order(ctx, name, store.OrderStop)
}

func (m *Manager) order(ctx context.Context, name string, order store.WorkerOrder) (Worker, error) {
	was, err := m.store.OrderWorker(ctx, name, order)
	if err != nil {
		return Worker{}, err
	}
	now, err := m.store.Now(ctx)
	if err != nil {
		now = was.Heartbeat // ordered it is; only its silence is unknown
	}
	m.log.Info("ordered worker", "worker", name, "order", string(order), "was", string(was.State))
	return newWorker(&was, now), nil
}

func newWorker(w *store.WorkerInfo, now statemachine.Time) Worker {
	worker := Worker{
		Name: w.Name, ID: w.ID, Incarnation: w.Incarnation, Node: w.Node, Host: w.Host, PID: w.PID,
		Version: w.Version, Containment: w.Containment, Labels: w.Labels,
		Env: w.Env, Resources: w.Resources, Classes: w.Classes, MaxThreads: int(w.MaxThreads),
		State: WorkerState(w.State), Order: WorkerOrder(w.Order), Reason: w.Reason,
		Slots: w.Slots, Busy: w.Busy, Stuck: w.Stuck, Tasks: w.Tasks,
		Started: momentOf(w.Started), Heartbeat: momentOf(w.Heartbeat), Ended: momentOf(w.Ended),
	}
	if w.Heartbeat != 0 {
		worker.Silent = max(0, time.Duration(now.Sub(w.Heartbeat))*time.Microsecond)
	}
	for _, q := range w.Queues {
		worker.Queues = append(worker.Queues, QueueUse(q))
	}
	return worker
}

// momentOf is the zero time for a moment that has not come.
func momentOf(t statemachine.Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t))
}
