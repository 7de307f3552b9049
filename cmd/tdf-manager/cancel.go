package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// The effects of the verb cancel.
var cancelEffects = []effect{
	{"cancelled", "cancelled %d", "would cancel %d"},
	{"asked", "asked workers to stop %d", "would ask workers to stop %d"},
	{"reported", "%d have run and will not be opened again", "%d have run and would not be opened again"},
	{"terminated", "took %d from another client's workers", "would take %d from another client's workers"},
}

func (a *app) cancel() *cobra.Command {
	b := &bulk{
		states:  []statemachine.State{statemachine.Blocked, statemachine.Open, statemachine.Running, statemachine.Executed},
		careful: true, effects: cancelEffects,
		remedy: func(statemachine.State) string { return "it is over; nothing is left to cancel" },
	}
	var reason string
	b.change = func(ctx context.Context, s *session, ids []int64, t *tally) error {
		changes, err := s.manager.Cancel(ctx, ids, reason, changeOptions(b.dryRun)...)
		t.changes(changes, cancelEffect)
		return err
	}
	cmd := b.command(a, "cancel", "Call tasks off for good, and stop those that run",
		"cancel calls tasks off. One that waits is cancelled at once. Of one that runs, the worker is told to\n"+
			"stop the whole tree of processes; it ends terminated, with the output it has written. One that has\n"+
			"ended stays as it is.",
		"  tdf-manager cancel 7 --reason \"wrong input\"\n"+
			"  tdf-manager cancel --queue nightly --state open --dry-run\n"+
			"  tdf-manager cancel all --yes")
	reasonFlag(cmd, &reason)
	return cmd
}

func reasonFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "reason", "", "why, for the record of each task")
}

func cancelEffect(c *manager.Change) string {
	switch {
	case c.Asked && c.Before == statemachine.Executed:
		return "reported"
	case c.Asked:
		return "asked"
	case c.After == statemachine.Terminated:
		return "terminated"
	default:
		return "cancelled"
	}
}

// changes notes what became of a page of tasks.
func (t *tally) changes(changes []manager.Change, effect func(*manager.Change) string) {
	for i := range changes {
		if c := &changes[i]; c.Err != nil {
			t.refuse(c.ID, c.Before, c.Err)
		} else {
			t.add(effect(c), affected{id: c.ID})
		}
	}
}
