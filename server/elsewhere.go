package server

import (
	"context"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// elsewhereWait is how long a task that has failed on a node is left to the other nodes.
const elsewhereWait = 30 * time.Second

// peers are the workers that a task could go to, as they were a moment ago. Only failures ask for them.
type peers struct {
	workers []task.Worker
	rules   fleet.Rules
	read    time.Time
}

// elsewhere are the fields by which a task that is opened again after a failure is left to other nodes: none where no other
// worker that claims may take it.
func (s *Server) elsewhere(ctx context.Context, t *tasks.TaskHeader, m *statemachine.Move, now statemachine.Time) []string {
	if m.To != statemachine.Open || t.Node == "" {
		return nil
	}
	if time.Since(s.peers.read) >= s.opt.RoundDuration {
		if err := s.peers.look(ctx, s.store); err != nil {
			s.log.Debug("could not look for another node", "task", t.ID, "error", err) // the task is run again where it may
			return nil
		}
	}
	if !s.peers.take(t) {
		return nil
	}
	return []string{tasks.AvoidField, max(now, m.NotBefore).Add(timing.FromStd(elsewhereWait)).Text() + " " + t.Node}
}

func (o *peers) look(ctx context.Context, store blaming) error {
	rules, err := store.Rules(ctx, "")
	if err != nil {
		return err
	}
	workers, _, err := store.Workers(ctx)
	if err != nil {
		return err
	}
	*o = peers{workers: workers, rules: rules, read: time.Now()}
	return nil
}

// take reports whether a worker of another node than that of its last round may take the task.
func (o *peers) take(t *tasks.TaskHeader) bool {
	return slices.ContainsFunc(o.workers, func(w task.Worker) bool {
		return w.Node != "" && w.Node != t.Node && o.rules.Takes(&w, t.Bucket)
	})
}
