package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

func (a *app) release() *cobra.Command {
	b := &bulk{
		states:  []statemachine.State{statemachine.Blocked},
		effects: []effect{{"released", "released %d", "would release %d"}},
		remedy:  func(statemachine.State) string { return "only held tasks, which are blocked, can be released" },
	}
	b.change = func(ctx context.Context, s *session, ids []int64, t *tally) error {
		changes, err := s.manager.Release(ctx, ids, changeOptions(b.dryRun)...)
		t.changes(changes, func(*manager.Change) string { return "released" })
		return err
	}
	return b.command(a, "release", "Open tasks that are held",
		"release opens tasks that are blocked: those held, and those submitted with --hold.",
		"  tdf-manager release 3-9\n  tdf-manager release --queue nightly\n  tdf-manager release all")
}
