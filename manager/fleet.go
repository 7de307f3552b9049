package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Node is a host that workers have registered with, or that was set.
type Node struct {
	Name string
	// MaxThreads is how many tasks may run at a time on the node, over all queues
	// (see NoLimit). Set says that an operator has said so; otherwise its workers'
	// configuration does.
	MaxThreads int
	Set        bool
	// Running is the number of rounds under way.
	Running int64
	// Offered is what its live workers offer of each resource, Used how much of it
	// the rounds have.
	Offered, Used map[string]int
	// Workers are those registered with the node, by name.
	Workers    []Worker
	Quarantine Quarantine
}

// Quarantine is what the server holds against a node.
type Quarantine struct {
	// Since is when the quarantine began; zero without one.
	Since time.Time
	// Run is the number of failures in a row that count against the node.
	Run int
	// NextTrial is when the node may try a task again; zero if that is not fixed.
	NextTrial time.Time
	// Reason is for people.
	Reason string
}

// NodeKeys are the names that [Manager.SetNode] knows: maxthreads.
func NodeKeys() []string { return task.NodeKeys() }

// Nodes lists the nodes by name.
func (m *Manager) Nodes(ctx context.Context) ([]Node, error) {
	found, now, err := m.store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	nodes := make([]Node, len(found))
	for i := range found {
		nodes[i] = newNode(&found[i], now)
	}
	return nodes, nil
}

// SetNode changes attributes of a node (see [NodeKeys]), also of one that no
// worker has registered with yet, and returns it. The empty value leaves an
// attribute to the workers' configuration again. The error may be a
// *statemachine.FieldError; then nothing has changed.
func (m *Manager) SetNode(ctx context.Context, name string, set map[string]string, opts ...ChangeOption) (Node, error) {
	c, err := m.changing(opts)
	if err != nil {
		return Node{}, err
	}
	if err := task.CheckNode(name); err != nil {
		return Node{}, err
	}
	change := func(n *task.Node) error { return setAll(n, set) }
	if !c.dry {
		if _, err := m.store.SetNode(ctx, name, change); err != nil {
			return Node{}, err
		}
		m.log.Info("changed node", "node", name, "by", c.by, "set", set)
	}
	found, now, err := m.node(ctx, name)
	if err == nil && c.dry {
		err = change(&found.Node)
	}
	return newNode(&found, now), err
}

// node is the record of a node, an empty one if there is none.
func (m *Manager) node(ctx context.Context, name string) (store.NodeInfo, statemachine.Time, error) {
	all, now, err := m.store.Nodes(ctx)
	for i := range all {
		if all[i].Name == name {
			return all[i], now, err
		}
	}
	return store.NodeInfo{Node: task.NewNode(name)}, now, err
}

func newNode(n *store.NodeInfo, now statemachine.Time) Node {
	node := Node{
		Name: n.Name, MaxThreads: int(n.MaxThreads), Set: n.MaxThreadsSet, Running: n.Running, Used: n.Used,
		Offered: map[string]int{},
		Quarantine: Quarantine{
			Since: momentOf(n.Quarantined), Run: n.Run, NextTrial: momentOf(n.TrialAt), Reason: n.Reason,
		},
	}
	for i := range n.Workers {
		w := newWorker(&n.Workers[i], now)
		node.Workers = append(node.Workers, w)
		if w.State.Alive() {
			for name, amount := range w.Resources {
				node.Offered[name] = max(node.Offered[name], amount)
			}
		}
	}
	if !node.Set {
		node.MaxThreads = configuredThreads(node.Workers)
	}
	return node
}

// configuredThreads is what the live workers of a node let run there; where they
// differ, that of the one that lets most.
func configuredThreads(workers []Worker) int {
	most, alive := 0, false
	for i := range workers {
		if w := &workers[i]; w.State.Alive() {
			if w.MaxThreads == NoLimit {
				return NoLimit
			}
			most, alive = max(most, w.MaxThreads), true
		}
	}
	if !alive {
		return NoLimit
	}
	return most
}

// RemoveNode takes away all that is known of a node that is gone: its limit, what
// servers have found of it, its place in the list. The error matches
// [ErrNodeInUse] while a worker is registered from there or a task runs there, or
// is a *statemachine.FieldError. A node that nothing is known of is no error. A
// worker that registers from there brings the node back.
func (m *Manager) RemoveNode(ctx context.Context, name string, opts ...ChangeOption) error {
	c, err := m.changing(opts)
	if err != nil {
		return err
	}
	if err := task.CheckNode(name); err != nil {
		return err
	}
	if c.dry {
		return m.nodeFree(ctx, name)
	}
	if err := m.store.RemoveNode(ctx, name); err != nil {
		return err
	}
	m.log.Info("removed node", "node", name, "by", c.by)
	return nil
}

// nodeFree returns an error if the node could not be removed now.
func (m *Manager) nodeFree(ctx context.Context, name string) error {
	found, _, err := m.node(ctx, name)
	if err != nil {
		return err
	}
	if found.Running > 0 {
		return fmt.Errorf("node %q: tasks run there: %w", name, ErrNodeInUse)
	}
	for i := range found.Workers {
		if w := &found.Workers[i]; w.Ended == 0 {
			return fmt.Errorf("node %q: worker %q is registered from there: %w", name, w.Name, ErrNodeInUse)
		}
	}
	return nil
}

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
