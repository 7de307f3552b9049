package verbs

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/planview"
	planfile "github.com/tdf-go/tdf/plan/file"
	"github.com/tdf-go/tdf/task"
)

func (a *app) planShow() *cobra.Command {
	var graph string
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a plan and its tasks, or draw it", Args: cobra.ExactArgs(1),
		Long: "show prints a plan with its tasks. ID is that of the plan, or last. Tasks that were retried are left out:\n" +
			"their retries stand for them.",
		Example: "  tdf-manager plan show last\n  tdf-manager plan show 3 --graph text\n" +
			"  tdf-manager plan show 3 --graph dot | dot -Tsvg > plan.svg",
	}
	graphFlag(cmd, &graph)
	asJSON := jsonFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("graph", "json")
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		p, err := s.readPlan(ctx, s.args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			shown, err := s.manager.ViewPlan(ctx, p.ID)
			if err != nil {
				return s.noPlan(err)
			}
			return cli.WriteJSON(s.out, shown)
		}
		view := s.view(p.ID)
		tasks, err := view.Tasks(ctx)
		if err != nil {
			return err
		}
		if graph != "" {
			return drawPlan(s, p, tasks, graph)
		}
		found, err := view.Outlook(ctx, p.OnFailure, tasks)
		if err != nil {
			return err
		}
		ahead := &outlook{found}
		steps, err := s.planSteps(ctx, p)
		if err != nil {
			return err
		}
		return showPlan(s, p, tasks, steps, ahead)
	})
	return cmd
}

// What show lists of tasks; a graph has all of them.
const (
	mostShown = 100
	mostInput = 40 // characters of an input
)

func showPlan(s *session, p *task.Plan, tasks []*planview.Task, steps []task.PlanStep, ahead *outlook) error {
	table := cli.NewTable(s.out)
	table.Row("plan", p.ID)
	table.Row("name", dashText(p.Name))
	table.Row("state", p.State)
	table.Row("on_failure", p.OnFailure)
	table.Row("tasks", planCounts(p))
	table.Row("created", when(p.Created))
	table.Row("ready", when(p.Ready))
	table.Row("over", when(p.Over))
	if !p.State.Over() && ahead.Tasks > 0 {
		table.Row("left", ahead.leftText()+withoutSteps(p))
		table.Row("critical path", ahead.pathText())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if remedy := s.planRemedy(p); remedy != "" {
		if err := printf(s.out, "\n%s\n", remedy); err != nil {
			return err
		}
	}
	if err := listSteps(s, steps); err != nil {
		return err
	}
	return listPlanned(s, p, tasks)
}

func listPlanned(s *session, p *task.Plan, tasks []*planview.Task) error {
	if len(tasks) == 0 {
		return nil
	}
	if err := printf(s.out, "\n"); err != nil {
		return err
	}
	table := cli.NewTable(s.out, "ID", "STEP", "STATE", "PROGRAM", "INPUT", "NEEDS")
	for _, t := range tasks[:min(len(tasks), mostShown)] {
		table.Row(t.ID, dashText(t.Step), t.State(), t.Program, dashText(shorten(t.Input, mostInput)), dashText(needsText(t.Needs)))
	}
	if err := table.Flush(); err != nil || len(tasks) <= mostShown {
		return err
	}
	return printf(s.cmd.ErrOrStderr(), "these are the first %d of %d tasks; all of them: %s\n",
		mostShown, len(tasks), s.command("plan show %d --graph text", p.ID))
}

// needsText is for people: "3-5, 7 any".
func needsText(needs []task.Need) string {
	text := ""
	for _, on := range []task.When{task.NeedsSuccess, task.NeedsAny, task.NeedsFailure} {
		var ids []int64
		for _, n := range needs {
			if n.On == on {
				ids = append(ids, n.Task)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += ranges(ids)
		if on != task.NeedsSuccess {
			text += " " + string(on)
		}
	}
	return text
}

// drawPlan draws the tasks of a plan.
func drawPlan(s *session, p *task.Plan, tasks []*planview.Task, form string) error {
	d := &planfile.Drawing{Name: planName(p)}
	for _, t := range tasks {
		d.Nodes = append(d.Nodes, plannedNode(t))
	}
	return draw(s.out, d, form)
}

func plannedNode(t *planview.Task) planfile.Node {
	n := planfile.Node{ID: strconv.FormatInt(t.ID, 10), Label: t.Name(), State: t.State()}
	if t.Input != "" {
		n.Label += " " + shorten(t.Input, mostInput)
	}
	for _, need := range t.Needs {
		a := planfile.Arrow{ID: strconv.FormatInt(need.Task, 10)}
		if need.On != task.NeedsSuccess {
			a.When = string(need.On)
		}
		n.From = append(n.From, a)
	}
	return n
}
