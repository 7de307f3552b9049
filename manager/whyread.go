package manager

import (
	"context"
	"strings"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// surroundings reads what there is beside the task.
func (m *Manager) surroundings(ctx context.Context) (why.Situation, error) {
	s := why.Situation{GateRun: store.GateRun}
	queues, _, err := m.store.Queues(ctx)
	if err != nil {
		return s, err
	}
	for i := range queues {
		q := &queues[i]
		s.Queues = append(s.Queues, why.Queue{
			Queue: q.Queue, Waiting: q.Waiting, Due: q.Due, Oldest: q.Oldest, Running: q.Running, Nodes: q.Nodes,
		})
	}
	nodes, err := m.store.NodeRecords(ctx)
	if err != nil {
		return s, err
	}
	for i := range nodes {
		n := &nodes[i]
		s.Nodes = append(s.Nodes, why.Node{Node: n.Node, Running: n.Running, Used: n.Used, Held: n.Held})
	}
	if err := m.published(ctx, &s); err != nil {
		return s, err
	}
	return s, m.crew(ctx, &s)
}

// published reads what servers have said.
func (m *Manager) published(ctx context.Context, s *why.Situation) error {
	mode, err := m.store.Quarantine(ctx)
	if err != nil {
		return err
	}
	s.Gate = mode == "on"
	if s.Grace, _, err = m.store.Grace(ctx); err != nil {
		return err
	}
	if s.ServerSeen, err = m.store.ServerSeen(ctx); err != nil {
		return err
	}
	step, err := m.store.LastStep(ctx)
	s.Ahead, s.Stepped, s.StepBy = timing.FromStd(step.Ahead), step.At, timing.FromStd(step.By)
	return err
}

// crew reads the workers, and the time.
func (m *Manager) crew(ctx context.Context, s *why.Situation) error {
	lease, err := m.store.Lease(ctx)
	if err != nil {
		return err
	}
	workers, now, err := m.store.Workers(ctx)
	s.Now = now
	for i := range workers {
		s.Workers = append(s.Workers, workerOf(&workers[i], now, lease))
	}
	return err
}

func workerOf(w *store.WorkerInfo, now statemachine.Time, lease statemachine.Duration) why.Worker {
	offer := route.Offer{
		Worker: w.Name, Node: w.Node, Env: w.Env, Labels: w.Labels, Resources: w.Resources,
		Classes: w.Classes, MaxThreads: w.MaxThreads,
	}
	found := why.Worker{
		Offer: offer, State: why.State(w.State), Incarnation: w.Incarnation, Reason: w.Reason, Slots: w.Slots,
		Busy: max(w.Busy, len(w.Tasks)) + w.Stuck, Heartbeat: w.Heartbeat, Serving: map[string]int{},
	}
	if found.State == why.Draining || found.State == why.Drained || strings.HasPrefix(found.Reason, store.ReasonSetAside) {
		found.Reason = "" // it says the same once more
	}
	if found.State == why.Ready && w.Order != store.OrderNone {
		found.State = why.Draining // it has not heard of it yet
	}
	if found.Alive() && found.Reason == "" && now.Sub(w.Heartbeat) > lease {
		found.Reason = "its lease is over, a server will call it lost"
	}
	for _, q := range w.Queues {
		found.Serving[q.Queue] += q.Processing
	}
	return found
}
