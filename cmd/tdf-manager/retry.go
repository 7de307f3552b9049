package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// retrying is the verb retry with its flags.
type retrying struct {
	bulk

	failed, again bool
	endBefore     string
	opts          []manager.ChangeOption
}

// The effects of the verb retry.
var retryEffects = []effect{
	{"opened", "opened %d again", "would open %d again"},
	{"existing", "%d were opened again before", "%d were opened again before"},
}

// failedOutcomes are what --failed means: work that was begun and did not get done.
var failedOutcomes = []statemachine.State{statemachine.Failed, statemachine.TimedOut, statemachine.Orphaned}

func (a *app) retry() *cobra.Command {
	r := &retrying{bulk: bulk{
		outcomes: statemachine.Outcomes(), careful: true, effects: retryEffects,
		remedy: func(statemachine.State) string { return "it has not ended; only ended tasks can be opened again" },
	}}
	r.change = r.retry
	cmd := r.command(a, "retry", "Open new tasks from ended ones, with the same definition",
		"retry opens for each ended task a new one with the same definition, linked by retry_of. A task that\n"+
			"has been opened again before is not opened twice. --failed means tasks that failed, timed out or lost\n"+
			"their workers too often, archived or not; not those cancelled, terminated or expired.",
		"  tdf-manager retry 7\n"+
			"  tdf-manager retry --failed --match 'No space left' --queue nightly\n"+
			"  tdf-manager retry --failed --dry-run")
	flags := cmd.Flags()
	flags.BoolVar(&r.failed, "failed", false, "only tasks that failed, timed out or were orphaned")
	flags.BoolVar(&r.again, "again", false, "also those that have been opened again before")
	flags.StringVar(&r.endBefore, "end-before", "", "latest moment of being executed, in place of the former one")
	cmd.MarkFlagsMutuallyExclusive("failed", "state")
	cmd.RunE = a.withManager(false, noOptions, r.do)
	return cmd
}

// do narrows the choice by --failed before all else.
func (r *retrying) do(ctx context.Context, s *session) error {
	if r.failed {
		r.outcomes, r.narrowed = failedOutcomes, true
	}
	if len(s.args) == 0 && !r.failed && len(r.choice.states) == 0 && r.choice.narrow() {
		return cli.Usagef("without ids, add --failed or --state; or say all, which means those that succeeded too")
	}
	r.opts = changeOptions(r.dryRun)
	if r.again {
		r.opts = append(r.opts, manager.Again())
	}
	if s.cmd.Flags().Changed("end-before") {
		now, err := s.manager.Now(ctx)
		if err != nil {
			return err
		}
		end, err := parseWhen("end_before", r.endBefore, now)
		if err == nil && end.IsZero() {
			err = cli.Usagef("--end-before is empty; write a time such as +1h, or inf")
		}
		if err != nil {
			return err
		}
		r.opts = append(r.opts, manager.WithEndBefore(end))
	}
	return r.bulk.do(ctx, s)
}

func (r *retrying) retry(ctx context.Context, s *session, ids []int64, t *tally) error {
	done, err := s.manager.Retry(ctx, ids, r.opts...)
	for i := range done {
		if denied(done[i].Err) { // then so are all
			return done[i].Err
		}
		t.retried(&done[i])
	}
	return err
}

func (t *tally) retried(r *manager.Retried) {
	switch {
	case r.Err != nil:
		t.refuse(r.ID, r.Ended, r.Err)
	case r.Existing:
		t.add("existing", affected{id: r.ID, opened: r.New})
	default:
		t.add("opened", affected{id: r.ID, opened: r.New})
	}
}
