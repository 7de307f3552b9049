package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// plan is the group of verbs about plans.
func (a *app) plan() *cobra.Command {
	cmd := &cobra.Command{
		Use: planField, Aliases: []string{"plans"}, Short: "Run plans: tasks that wait for others and get their results",
		Long: "plan runs plan files, which are YAML: steps, each a task or one for each item of a list, with what they need.\n" +
			"The format is described in docs/PLANFILE.md. It also looks at plans and steers them.",
		Example: "  tdf-manager plan check pipeline.yaml --graph text\n" +
			"  tdf-manager plan run pipeline.yaml -p day=2026-11-21\n" +
			"  tdf-manager plan ls\n" +
			"  tdf-manager plan show 3 --graph dot | dot -Tsvg > plan.svg\n" +
			"  tdf-manager plan retry 3",
	}
	cmd.AddCommand(a.planCheck(), a.planSubmit(), a.planRun(), a.planLs(), a.planShow(),
		a.planHold(), a.planResume(), a.planCancel(), a.planRetry())
	return cmd
}

// Names of fields of plans in JSON.
const (
	planField  = "plan"
	stateField = "state"
	stepField  = "step"
	totalField = "total"
)

// planID reads the id of a plan, and last for the one that was made last.
func (s *session) planID(ctx context.Context, text string) (int64, error) {
	if text == lastTask {
		plans, err := s.manager.Plans(ctx, 0, 1)
		if err == nil && len(plans) == 0 {
			err = cli.WithCode(cli.ExitUsage, errors.New("there is no plan yet; make one with tdf-manager plan submit FILE"))
		}
		if err != nil {
			return 0, err
		}
		return plans[0].ID, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, cli.Usagef("%q is no plan; write the id of one, such as 3, or last", text)
	}
	return id, nil
}

// readPlan reads a plan by what a person calls it.
func (s *session) readPlan(ctx context.Context, text string) (*manager.Plan, error) {
	id, err := s.planID(ctx, text)
	if err != nil {
		return nil, err
	}
	p, err := s.manager.Plan(ctx, id)
	return p, noPlan(err)
}

// noPlan adds the remedy to the error for a plan that is not there, and the exit
// codes to those about plans.
func noPlan(err error) error {
	switch {
	case errors.Is(err, manager.ErrNoPlan):
		return cli.WithCode(cli.ExitUsage, fmt.Errorf("%w; see tdf-manager plan ls", err))
	case errors.Is(err, manager.ErrPlanState):
		if is, ok := errors.AsType[*manager.PlanStateError](err); ok && is.State.Over() {
			err = fmt.Errorf("%w; see tdf-manager plan show %d, or submit its file again", err, is.ID)
		}
		return cli.WithCode(cli.ExitTaskFailed, err)
	default:
		return err
	}
}

// planName is the plan for people: "plan 3 (nightly)".
func planName(p *manager.Plan) string {
	if p.Name == "" {
		return fmt.Sprintf("plan %d", p.ID)
	}
	return fmt.Sprintf("plan %d (%s)", p.ID, cli.Safe(p.Name))
}

// planCounts says how many tasks a plan has, and how far they are.
func planCounts(p *manager.Plan) string {
	text := fmt.Sprintf("%d of %d tasks have ended", p.Total-p.Left, p.Total)
	if ended := endedLine(p); ended != "" {
		text += ": " + ended
	}
	if p.Growing > 0 {
		text += "; " + stepsToOpen(p)
	}
	return text
}

// endedLine says how the tasks of a plan have ended; empty while none has.
func endedLine(p *manager.Plan) string {
	var parts []string
	if len(p.Ended) > 0 {
		parts = append(parts, countsLine(p.Ended))
	}
	if p.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("skipped %d", p.Skipped))
	}
	return strings.Join(parts, "  ")
}

// planRemedy says how a plan that holds or has failed goes on; empty where there
// is nothing to do.
func planRemedy(p *manager.Plan) string {
	switch p.State {
	case manager.PlanHeld:
		if task, err := strconv.ParseInt(p.HeldBy, 10, 64); err == nil {
			return fmt.Sprintf("it is held because task %d failed; see tdf-manager logs %d --stderr, then tdf-manager retry %d, "+
				"or tdf-manager plan resume %d to go on without what needs it", task, task, task, p.ID)
		}
		return fmt.Sprintf("it is held by %s; tdf-manager plan resume %d lets it go on", cli.Safe(p.HeldBy), p.ID)
	case manager.PlanFailed:
		if p.GrowthError != "" {
			return fmt.Sprintf("%s; mend that, and then tdf-manager plan retry %d, or tdf-manager retry the task whose lines they are",
				cli.Safe(p.GrowthError), p.ID)
		}
		return fmt.Sprintf("tdf-manager plan retry %d runs again what did not succeed, and nothing else", p.ID)
	case manager.PlanBuilding:
		return "nothing of it runs yet: it was not submitted to its end; repeat plan submit with the same --key, " +
			fmt.Sprintf("or tdf-manager plan cancel %d", p.ID)
	case manager.PlanReady, manager.PlanCompleted, manager.PlanCancelled:
	}
	return ""
}

// planObject is the JSON form: moments are seconds since 1970, or null.
func planObject(p *manager.Plan) map[string]any {
	return map[string]any{
		"id": p.ID, nameField: p.Name, stateField: p.State, "on_failure": p.OnFailure, "held_by": p.HeldBy,
		totalField: p.Total, "left": p.Left, "growing": p.Growing, "growth_error": p.GrowthError,
		"skipped": p.Skipped, "ended": orEmptyMap(p.Ended),
		"created": jsonTime(p.Created), "ready": jsonTime(p.Ready), "over": jsonTime(p.Over),
	}
}
