package manager

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/task"
)

// Nodes lists the nodes by name.
func (m *Manager) Nodes(ctx context.Context) ([]task.Node, error) {
	nodes, _, err := m.store.Nodes(ctx)
	return nodes, err
}

// SetNode applies change to the MaxThreads of a node, also of one that no worker has
// registered with yet, and returns the node; what servers have found of it stays. With an
// error nothing changes: it is that of change, or a *statemachine.FieldError. If others
// change a node or a queue meanwhile, change is called again.
func (m *Manager) SetNode(ctx context.Context, name string, change func(*task.NodeRecord) error, o ChangeOptions) (task.Node, error) {
	o, err := m.complete(o)
	if err != nil {
		return task.Node{}, err
	}
	if err := task.CheckNode(name); err != nil {
		return task.Node{}, err
	}
	if !o.DryRun {
		after, err := m.store.SetNode(ctx, name, change)
		if err != nil {
			return task.Node{}, err
		}
		m.did(o, "changed node", "node", name, "to", after.MaxThreads)
		if err := m.note(ctx, o, "node set", []string{name}, nil); err != nil {
			return task.Node{}, err
		}
	}
	found, err := m.node(ctx, name)
	if err != nil || !o.DryRun {
		return found, err
	}
	if !found.MaxThreadsSet {
		found.MaxThreads = "" // as in the record
	}
	found.NodeRecord, err = fleet.ChangedNode(found.NodeRecord, change)
	found.MaxThreadsSet = found.MaxThreads != ""
	found.Add() // its workers' limit may count again
	return found, err
}

// node is the node of a name, an empty one if nothing is known of it.
func (m *Manager) node(ctx context.Context, name string) (task.Node, error) {
	all, err := m.Nodes(ctx)
	for i := range all {
		if all[i].Name == name {
			return all[i], err
		}
	}
	return task.ParseNode(name, nil).Idle(), err
}

// RemoveNode removes a node that is gone: its limit, what servers have found out about
// it, and its place in the list. The error matches [task.ErrNodeInUse] while a worker
// is registered from there or a task runs there, or is a *statemachine.FieldError. To
// remove an unknown node is no error. A worker that registers from there brings the
// node back.
func (m *Manager) RemoveNode(ctx context.Context, name string, o ChangeOptions) error {
	o, err := m.complete(o)
	if err != nil {
		return err
	}
	if err := task.CheckNode(name); err != nil {
		return err
	}
	if o.DryRun {
		return m.nodeFree(ctx, name)
	}
	if err := m.store.RemoveNode(ctx, name); err != nil {
		return err
	}
	m.did(o, "removed node", "node", name)
	return m.note(ctx, o, "node rm", []string{name}, nil)
}

func (m *Manager) nodeFree(ctx context.Context, name string) error {
	found, err := m.node(ctx, name)
	if err != nil {
		return err
	}
	if found.Running > 0 {
		return fmt.Errorf("node %q: tasks run there: %w", name, task.ErrNodeInUse)
	}
	for i := range found.Workers {
		if w := &found.Workers[i]; w.Ended.IsZero() {
			return fmt.Errorf("node %q: worker %q is registered from there: %w", name, w.Name, task.ErrNodeInUse)
		}
	}
	return nil
}

// Workers lists the workers by name, also those that are lost or stopped.
func (m *Manager) Workers(ctx context.Context) ([]task.Worker, error) {
	workers, _, err := m.store.Workers(ctx)
	return workers, err
}

// Worker returns one worker by name. The error matches [task.ErrNoWorker] if no
// worker has ever had it.
func (m *Manager) Worker(ctx context.Context, name string) (task.Worker, error) {
	w, _, err := m.store.Worker(ctx, name)
	return w, err
}

// CommandWorker tells a worker to drain: to claim nothing more and to finish what it
// runs, until the order is taken back with [task.NoCommand], also over a restart. Or
// it tells the worker to stop as on SIGTERM: it finishes what it runs within its
// drain_timeout, hands the rest back, and leaves; that cannot be taken back. The
// answer is the worker as it was. The error matches [task.ErrNoWorker] for an unknown name.
func (m *Manager) CommandWorker(ctx context.Context, name string, order task.WorkerCommand) (task.Worker, error) {
	was, err := m.store.CommandWorker(ctx, name, order)
	if err != nil {
		return task.Worker{}, err
	}
	m.log.Info("ordered worker", "worker", name, "order", string(order), "was", string(was.State))
	return was, m.note(ctx, ChangeOptions{}, "worker "+cmp.Or(string(order), "undrain"), []string{name}, nil)
}

// removed names the versions that workers have removed, as program@HASH with the first digits.
func removed(stocks []task.Stock) (names []string) {
	const digits = 12
	for i := range stocks {
		for _, v := range stocks[i].Versions {
			if v.Removed {
				names = append(names, v.Program+"@"+v.SHA256[:min(digits, len(v.SHA256))])
			}
		}
	}
	return names
}

// Errand asks workers that are alive and run programs, those that suit or all if that is nil, about the versions of
// programs that they keep, and has them removed if e says so. It waits for answers at most for the time patience; a
// worker that has not answered by then is Silent, and does not begin the errand later. Stocks
// come in the order of the names. The error is a *statemachine.FieldError for an errand that no worker would do.
func (m *Manager) Errand(ctx context.Context, e task.Errand, patience time.Duration, suits func(*task.Worker) bool) ([]task.Stock, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("errand: %w", err)
	}
	workers, err := m.Workers(ctx)
	if err != nil {
		return nil, err
	}
	stocks, names := []task.Stock{}, []string{}
	for i := range workers {
		if w := &workers[i]; w.State.Alive() && !w.HandlersOnly && (suits == nil || suits(w)) {
			stocks = append(stocks, task.Stock{Worker: w.Name, Node: w.Node, Silent: true, Versions: []task.StoredVersion{}})
			names = append(names, w.Name)
		}
	}
	answers, err := m.store.Ask(ctx, string(text), names, patience)
	if err != nil {
		return nil, err
	}
	for i := range stocks {
		s := &stocks[i]
		answer, ok := answers[s.Worker]
		if s.Silent = !ok; s.Silent {
			continue
		}
		who, node := s.Worker, s.Node
		if err := json.Unmarshal([]byte(answer), s); err != nil {
			s.Error = "its answer cannot be read: " + err.Error()
		}
		s.Worker, s.Node, s.Silent = who, node, false
	}
	if e.Remove {
		m.log.Info("had versions of programs removed", "versions", e.Versions, "workers", len(answers))
		err = m.note(ctx, ChangeOptions{}, "program rm", removed(stocks), nil)
	}
	return stocks, err
}
