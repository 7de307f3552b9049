package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

func (a *app) planRun() *cobra.Command {
	sub := &planSubmission{}
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Make a plan from a file, let it run, and wait for its end",
		Long: "run does what submit does and then waits, with the progress on stderr. It ends with 0 if the plan is\n" +
			"completed, and with 1 if it has failed, was cancelled or is held. Interrupted, it leaves the plan running.",
		Example: "  tdf-manager plan run pipeline.yaml -p day=2026-11-21",
	}
	sub.flags(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withBoth(func(ctx context.Context, s *session) error {
		id, err := sub.submit(ctx, s)
		if err != nil {
			return err
		}
		if !*asJSON {
			if err := printf(s.out, "%s: %s\n", planName(&manager.Plan{ID: id, Name: sub.source.plan.Name}), sub.source.stepsText()); err != nil {
				return err
			}
		}
		p, err := waitPlan(ctx, s, id)
		if err != nil {
			return fmt.Errorf("plan %d goes on without being watched; see tdf-manager plan show %d: %w", id, id, err)
		}
		return finishPlan(ctx, s, p, *asJSON)
	})
	return cmd
}

// errHeld is the cause of a wait that ends because the plan is held.
var errHeld = errors.New("held")

// waitPlan shows the progress of a plan until it is over or held.
func waitPlan(ctx context.Context, s *session, id int64) (*manager.Plan, error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	show := newDisplay(s)
	p, err := s.manager.WaitPlan(within, id, func(p *manager.Plan) {
		show.update(planProgress(p))
		if p.State == manager.PlanHeld {
			cancel(errHeld)
		}
	})
	show.close()
	if errors.Is(context.Cause(within), errHeld) {
		err = nil
	}
	return p, noPlan(err)
}

// planProgress is how far a plan is, for a display of tasks.
func planProgress(p *manager.Plan) manager.Progress {
	states := map[statemachine.State]int{}
	for state, n := range p.Ended {
		states[state] = int(n)
	}
	return manager.Progress{Total: int(p.Total), Done: int(p.Total - p.Left), States: states}
}

// finishPlan prints how a plan ended and turns it into an exit code.
func finishPlan(ctx context.Context, s *session, p *manager.Plan, asJSON bool) error {
	culprits, err := planCulprits(ctx, s, p)
	if err != nil {
		return err
	}
	failures, err := firstFailures(ctx, s, culprits)
	switch {
	case err != nil:
		return err
	case asJSON:
		object := planObject(p)
		object["first_unsuccessful"] = failures
		err = cli.WriteJSON(s.out, object)
	default:
		err = printPlanEnd(s, p, failures, len(culprits))
	}
	if err != nil || p.State == manager.PlanCompleted {
		return err
	}
	return cli.Exit(cli.ExitTaskFailed)
}

// planCulprits are the tasks of a plan that did not succeed of their own accord:
// neither cancelled because of others, nor retried since.
func planCulprits(ctx context.Context, s *session, p *manager.Plan) ([]int64, error) {
	if p.State == manager.PlanCompleted {
		return nil, nil
	}
	tasks, err := s.plannedTasks(ctx, p.ID)
	var ids []int64
	for _, t := range tasks {
		if t.end.Ended() && t.end != statemachine.Succeeded && t.doomedBy == 0 {
			ids = append(ids, t.id)
		}
	}
	return ids, err
}

func printPlanEnd(s *session, p *manager.Plan, failures []failure, all int) error {
	if err := printf(s.out, "%s %s; %s\n", planName(p), p.State, planCounts(p)); err != nil {
		return err
	}
	for _, f := range failures {
		if err := printf(s.out, "\ntask %d %s\n%s", f.ID, f.State, indent(f.Error)); err != nil {
			return err
		}
	}
	if more := all - len(failures); more > 0 {
		if err := printf(s.out, "\nand %d more\n", more); err != nil {
			return err
		}
	}
	if remedy := planRemedy(p); remedy != "" {
		return printf(s.out, "\n%s\n", remedy)
	}
	return nil
}
