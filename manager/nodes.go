package manager

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
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
	// Since is when the node was set aside; zero if it is not.
	Since time.Time
	// Run is the number of failures in a row that count against the node.
	Run int
	// NextTrial is when the node may try a task again; zero if that is not fixed.
	NextTrial time.Time
	// Reason is for people.
	Reason string
}

// NodeKeys are the names that [Manager.SetNode] knows: maxthreads.
func NodeKeys() []string { return route.NodeKeys() }

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
	if err := route.CheckNode(name); err != nil {
		return Node{}, err
	}
	change := func(n *route.Node) error { return setAll(n, set) }
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
	return store.NodeInfo{Node: route.NewNode(name)}, now, err
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
