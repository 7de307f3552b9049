package verbs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// plan is the group of verbs about plans.
func (a *app) plan() *cobra.Command {
	cmd := &cobra.Command{
		Use: planField, Aliases: []string{"plans"}, Short: "Run plans: tasks that wait for others and get their results",
		Long: "plan runs plan files, which are YAML: steps, each a task or one for each item of a list, and their\n" +
			"needs. docs/PLANFILE.md describes the format. Other verbs show and steer plans.",
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

// planID reads the id of a plan, or the name of a job, and last for the plan that was made last.
func (s *session) planID(ctx context.Context, text string) (task.PlanID, error) {
	if id := bulk.JobOf(text); id > 0 {
		return id, nil
	}
	if text == bulk.LastTask {
		newest, err := answer.Plans(ctx, s.manager, 1, false)
		if err != nil {
			return 0, err
		}
		if len(newest) > 0 {
			return newest[0].ID, nil
		}
		return 0, cli.WithCode(cli.ExitUsage, fmt.Errorf("there is no plan yet; make one with %s", s.command("plan submit FILE")))
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, cli.Usagef("%q is not the id of a plan; write one such as 3, or last", text)
	}
	return task.PlanID(id), nil
}

// readPlan reads a plan by what a person calls it.
func (s *session) readPlan(ctx context.Context, text string) (*task.Plan, error) {
	id, err := s.planID(ctx, text)
	if err != nil {
		return nil, err
	}
	p, err := s.manager.Plan(ctx, id)
	return p, s.noPlan(err)
}

// noPlan adds the remedy to the error for a plan that is not there, and the exit
// codes to those about plans.
func (s *session) noPlan(err error) error {
	switch {
	case errors.Is(err, task.ErrNoPlan):
		return cli.WithCode(cli.ExitUsage, fmt.Errorf("%w; see %s", err, s.command("plan ls")))
	case errors.Is(err, task.ErrPlanState):
		if is, ok := errors.AsType[*manager.PlanStateError](err); ok && is.State.Terminal() {
			err = fmt.Errorf("%w; see %s, or submit its file again", err, s.command("plan show %d", is.ID))
		}
		return cli.WithCode(cli.ExitTaskFailed, err)
	default:
		return err
	}
}

// planName is the plan for people: "plan 3 (nightly)".
func planName(p *task.Plan) string {
	if p.Name == "" {
		return fmt.Sprintf("plan %d", p.ID)
	}
	return fmt.Sprintf("plan %d (%s)", p.ID, cli.Safe(p.Name))
}

// planCounts says how many tasks a plan has, and how far they are.
func planCounts(p *task.Plan) string {
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
func endedLine(p *task.Plan) string {
	var parts []string
	if text := statesText(p.Ended); text != "" {
		parts = append(parts, text)
	}
	if p.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("skipped %d", p.Skipped))
	}
	return strings.Join(parts, "  ")
}

// planRemedy says how a plan that holds or has failed goes on; empty where there
// is nothing to do.
func (s *session) planRemedy(p *task.Plan) string {
	switch p.State {
	case task.PlanHeld:
		if task, err := strconv.ParseInt(p.HeldBy, 10, 64); err == nil {
			return fmt.Sprintf("it is held because task %d failed; see %s, then %s, or %s to go on without what needs it",
				task, s.command("logs %d --stderr", task), s.command("retry %d", task), s.command("plan resume %d", p.ID))
		}
		return fmt.Sprintf("it is held by %s; %s lets it go on", cli.Safe(p.HeldBy), s.command("plan resume %d", p.ID))
	case task.PlanFailed:
		if p.GrowthError != "" {
			return fmt.Sprintf("%s; mend that, and then %s, or %s the task whose lines they are",
				cli.Safe(p.GrowthError), s.command("plan retry %d", p.ID), s.command("retry"))
		}
		return s.command("plan retry %d", p.ID) + " runs again what did not succeed, and nothing else"
	case task.PlanBuilding:
		return "nothing of it runs yet: it was not submitted to its end; repeat plan submit with the same --key, " +
			"or " + s.command("plan cancel %d", p.ID)
	case task.PlanReady, task.PlanCompleted, task.PlanCancelled:
	}
	return ""
}

func (a *app) planLs() *cobra.Command {
	var most int
	cmd := withJSON(&cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List plans, the newest first", Args: cobra.NoArgs,
		Long:    "ls lists plans, the newest first. LEFT counts the tasks that have not ended.",
		Example: "  tdf-manager plan ls\n  tdf-manager plan ls --json | jq '.[] | select(.state == \"held\").id'",
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			if err := checkMost(most); err != nil {
				return err
			}
			plans, err := answer.Plans(ctx, s.manager, most, false)
			if err != nil {
				return err
			}
			now, err := s.shownAt(ctx)
			if err != nil {
				return err
			}
			return s.result(plans, func() { listPlans(s, plans, now) })
		}),
	})
	cmd.Flags().IntVar(&most, "limit", 50, "list at most this `number` of plans")
	return cmd
}

// checkMost refuses a --limit that would list nothing.
func checkMost(most int) error {
	if most < 1 {
		return cli.Usagef("--limit %d is below 1; write how many to list", most)
	}
	return nil
}

func listPlans(s *session, plans []task.Plan, now time.Time) {
	if len(plans) == 0 {
		s.note("there is no plan yet; make one with %s", s.command("plan submit FILE"))
		return
	}
	table := s.out.Table("ID", "NAME", "STATE", "TASKS", "LEFT", "ENDED", "AGE")
	for i := range plans {
		p := &plans[i]
		table.Row(p.ID, dashText(p.Name), p.State, p.Total, p.Left, dashText(endedLine(p)), waited(p.Created, now))
	}
	table.Flush()
}

func (a *app) planHold() *cobra.Command {
	return a.steering(withReason(&cobra.Command{
		Use: "hold ID", Short: "Start no more tasks of a plan; running ones go on",
		Example: "  tdf-manager plan hold 3 --reason 'input is late'",
	}), "held", func(ctx context.Context, s *session, id task.PlanID) error {
		return s.manager.HoldPlan(ctx, id, s.change())
	})
}

func (a *app) planCancel() *cobra.Command {
	return a.steering(withReason(&cobra.Command{
		Use: "cancel ID", Short: "Cancel a plan: cancel its waiting tasks, stop the running ones",
		Example: "  tdf-manager plan cancel 3 --reason 'wrong day'",
	}), "cancelled", func(ctx context.Context, s *session, id task.PlanID) error {
		return s.manager.CancelPlan(ctx, id, s.change())
	})
}

func (a *app) planResume() *cobra.Command {
	return a.steering(&cobra.Command{
		Use: "resume ID", Short: "Continue a held plan",
		Long: "resume continues a held plan. Tasks that need a failed task wait until that is retried: see plan retry.",
	}, "resumed", func(ctx context.Context, s *session, id task.PlanID) error {
		return s.manager.ResumePlan(ctx, id)
	})
}

// steering makes the verbs that take a whole plan to another state.
func (a *app) steering(cmd *cobra.Command, done string, do func(ctx context.Context, s *session, id task.PlanID) error) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = a.withManager(func(ctx context.Context, s *session) error {
		id, err := s.planID(ctx, s.args[0])
		var p *task.Plan
		if err == nil {
			p, err = answer.SteeredPlan(ctx, s.manager, id, func(ctx context.Context, id task.PlanID) error { return do(ctx, s, id) })
		}
		if err != nil {
			return s.noPlan(err)
		}
		return s.result(p, func() { s.printf("%s: %s; %s\n", planName(p), done, planCounts(p)) })
	})
	return withJSON(cmd)
}

func (a *app) planRetry() *cobra.Command {
	return withJSON(withDryRun(&cobra.Command{
		Use: "retry ID", Short: "Retry the tasks of a plan that did not succeed, and dependants", Args: cobra.ExactArgs(1),
		Long: "retry opens again every task of a plan that ended without success, including those cancelled because\n" +
			"of another task. Each new task replaces the old one; succeeded tasks do not run again.",
		Example: "  tdf-manager plan retry 3\n  tdf-manager plan retry last --dry-run",
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			p, err := s.readPlan(ctx, s.args[0])
			if err != nil {
				return err
			}
			retried, err := s.manager.RetryPlan(ctx, p.ID, s.change())
			if err != nil {
				return s.noPlan(err)
			}
			return printRetried(s, p, retried)
		}),
	}))
}

// nothingRetried says what a retry does that opens no task.
func nothingRetried(p *task.Plan) string {
	if p.GrowthError != "" {
		return "servers look again at its steps that could not be opened"
	}
	return "no task needs a retry"
}

// printRetried says which tasks were opened again; the first error ends the verb.
func printRetried(s *session, p *task.Plan, retried []manager.Retried) error {
	done, failed := answer.RetriedPlan(p.ID, retried, s.dryRun)
	ids, fresh := done.IDs, done.Fresh
	switch {
	case s.json && failed == nil:
		s.out.JSON(done)
	case s.json:
	case len(ids) == 0 && failed == nil:
		s.printf("%s: %s\n", planName(p), nothingRetried(p))
	case s.dryRun:
		s.printf("%s: would open %d again: %s\n", planName(p), len(ids), clean.Ranges(ids))
	case len(ids) > 0:
		s.printf("%s: opened %d again: %s as %s\n", planName(p), len(ids), clean.Ranges(ids), clean.Ranges(fresh))
	}
	return failed
}
