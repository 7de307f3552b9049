package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) planHold() *cobra.Command {
	return a.steering(&cobra.Command{
		Use: "hold ID", Short: "Let nothing more of a plan start; what runs goes on",
		Example: "  tdf-manager plan hold 3 --reason 'input is late'",
	}, "held", func(ctx context.Context, s *session, id int64, reason string) error {
		return s.manager.HoldPlan(ctx, id, reason, changeOptions(false)...)
	})
}

func (a *app) planCancel() *cobra.Command {
	return a.steering(&cobra.Command{
		Use: "cancel ID", Short: "Call a plan off: what waits is cancelled, what runs is stopped",
		Example: "  tdf-manager plan cancel 3 --reason 'wrong day'",
	}, "cancelled", func(ctx context.Context, s *session, id int64, reason string) error {
		return s.manager.CancelPlan(ctx, id, reason, changeOptions(false)...)
	})
}

func (a *app) planResume() *cobra.Command {
	return a.steering(&cobra.Command{
		Use: "resume ID", Short: "Let a held plan go on",
		Long: "resume lets a held plan go on. What needs a task that failed waits until that is retried: see plan retry.",
	}, "resumed", func(ctx context.Context, s *session, id int64, _ string) error {
		return s.manager.ResumePlan(ctx, id)
	})
}

// steering makes the verbs that take a whole plan to another state.
func (a *app) steering(
	cmd *cobra.Command, done string, do func(ctx context.Context, s *session, id int64, reason string) error,
) *cobra.Command {
	var reason string
	cmd.Args = cobra.ExactArgs(1)
	if done != "resumed" {
		reasonFlag(cmd, &reason)
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		id, err := s.planID(ctx, s.args[0])
		if err != nil {
			return err
		}
		if err := do(ctx, s, id, reason); err != nil {
			return noPlan(err)
		}
		p, err := s.manager.Plan(ctx, id)
		switch {
		case err != nil:
			return noPlan(err)
		case *asJSON:
			return cli.WriteJSON(s.out, planObject(p))
		default:
			return printf(s.out, "%s: %s; %s\n", planName(p), done, planCounts(p))
		}
	})
	return cmd
}

func (a *app) planRetry() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "retry ID", Short: "Run again what did not succeed in a plan, and what waited for it", Args: cobra.ExactArgs(1),
		Long: "retry opens every task of a plan again that ended and did not succeed, also those that were cancelled because of\n" +
			"another one. Each new task takes the place of the old one; what has succeeded is not run again.",
		Example: "  tdf-manager plan retry 3\n  tdf-manager plan retry last --dry-run",
	}
	dryRunFlag(cmd, &dryRun)
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		p, err := s.readPlan(ctx, s.args[0])
		if err != nil {
			return err
		}
		retried, err := s.manager.RetryPlan(ctx, p.ID, changeOptions(dryRun)...)
		if err != nil {
			return noPlan(err)
		}
		return printRetried(s, p, retried, dryRun, *asJSON)
	})
	return cmd
}

// nothingRetried says what a retry does that opens no task.
func nothingRetried(p *manager.Plan) string {
	if p.GrowthError != "" {
		return "servers look again at its steps that could not be opened"
	}
	return "nothing of it is to be run again"
}

// printRetried says which tasks were opened again; the first error ends the verb.
func printRetried(s *session, p *manager.Plan, retried []manager.Retried, dryRun, asJSON bool) error {
	opened := map[int64]int64{}
	var ids, fresh []int64
	var failed error
	for i := range retried {
		r := &retried[i]
		if r.Err != nil {
			if failed == nil {
				failed = r.Err
			}
			continue
		}
		opened[r.ID] = r.New
		ids, fresh = append(ids, r.ID), append(fresh, r.New)
	}
	var err error
	switch {
	case asJSON && failed == nil:
		err = cli.WriteJSON(s.out, map[string]any{planField: p.ID, "opened": opened, dryRunField: dryRun})
	case asJSON:
	case len(ids) == 0 && failed == nil:
		err = printf(s.out, "%s: %s\n", planName(p), nothingRetried(p))
	case dryRun:
		err = printf(s.out, "%s: would open %d again: %s\n", planName(p), len(ids), ranges(ids))
	case len(ids) > 0:
		err = printf(s.out, "%s: opened %d again: %s as %s\n", planName(p), len(ids), ranges(ids), ranges(fresh))
	}
	if err == nil {
		err = failed
	}
	return err
}
