package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

func (a *app) hold() *cobra.Command {
	b := &bulk{
		states:  []statemachine.State{statemachine.Open},
		effects: []effect{{"held", "held %d", "would hold %d"}},
		remedy:  holdRemedy,
	}
	var reason string
	b.change = func(ctx context.Context, s *session, ids []int64, t *tally) error {
		changes, err := s.manager.Hold(ctx, ids, reason, changeOptions(b.dryRun)...)
		t.changes(changes, func(*manager.Change) string { return "held" })
		return err
	}
	cmd := b.command(a, "hold", "Put open tasks aside until they are released",
		"hold puts open tasks aside: they are blocked, and no worker takes them until release.",
		"  tdf-manager hold 3-9 --reason \"input is late\"\n"+
			"  tdf-manager hold --queue nightly\n"+
			"  tdf-manager hold all --dry-run")
	reasonFlag(cmd, &reason)
	return cmd
}

func holdRemedy(before statemachine.State) string {
	switch {
	case before == statemachine.Blocked:
		return "it is held already"
	case before.Settled():
		return "it is over"
	default:
		return "only open tasks can be held; cancel stops one that runs"
	}
}
