package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// planRunning is the verb plan run with its flags.
type planRunning struct {
	planSubmission

	quiet bool
	json  *bool
}

func (a *app) planRun() *cobra.Command {
	run := &planRunning{}
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Make a plan from a file, let it run, and wait for its end",
		Long: "run does what submit does and then waits, with the progress on stderr: how many tasks are in which state, which\n" +
			"run, how long the rest takes by how long others took, and the critical path, the longest chain of tasks that\n" +
			"are still to end. It ends with 0 if the plan is completed, and with 1 if it has failed, was cancelled or is\n" +
			"held. Interrupted, it leaves the plan running.",
		Example: "  tdf-manager plan run pipeline.yaml -p day=2026-11-21",
	}
	run.flags(cmd)
	cmd.Flags().BoolVarP(&run.quiet, "quiet", "q", false, "print the id of the plan only, and no progress")
	run.json = jsonFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("quiet", "json")
	cmd.RunE = a.withBoth(run.do)
	return cmd
}

func (r *planRunning) do(ctx context.Context, s *session) error {
	id, err := r.submit(ctx, s)
	if err == nil {
		err = r.announce(s, id)
	}
	if err != nil {
		return err
	}
	p, err := waitPlan(ctx, s, id, r.quiet)
	switch {
	case err != nil:
		return fmt.Errorf("plan %d goes on without being watched; see tdf-manager plan show %d: %w", id, id, err)
	case r.quiet:
		return planCode(p)
	default:
		return finishPlan(ctx, s, p, *r.json)
	}
}

// announce prints which plan was made.
func (r *planRunning) announce(s *session, id int64) error {
	switch {
	case *r.json:
		return nil
	case r.quiet:
		return printf(s.out, "%d\n", id)
	default:
		return printf(s.out, "%s: %s\n", planName(&manager.Plan{ID: id, Name: r.source.plan.Name}), r.source.stepsText())
	}
}

// errHeld is the cause of a wait that ends because the plan is held.
var errHeld = errors.New("held")

// waitPlan waits until a plan is over or held. It shows the progress, unless it is to be quiet.
func waitPlan(ctx context.Context, s *session, id int64, quiet bool) (*manager.Plan, error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	show := func(*manager.Plan) {}
	if !quiet {
		display := newPlanDisplay(ctx, s)
		defer display.close()
		show = display.update
	}
	p, err := s.manager.WaitPlan(within, id, func(p *manager.Plan) {
		show(p)
		if p.State == manager.PlanHeld {
			cancel(errHeld)
		}
	})
	if errors.Is(context.Cause(within), errHeld) {
		err = nil
	}
	return p, noPlan(err)
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
	if err != nil {
		return err
	}
	return planCode(p)
}

// planCode is the exit code for how a plan ended.
func planCode(p *manager.Plan) error {
	if p.State == manager.PlanCompleted {
		return nil
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
