package verbs

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/planview"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

func (a *app) planShow() *cobra.Command {
	var graph string
	cmd := withJSON(&cobra.Command{
		Use: "show ID", Short: "Show a plan and its tasks, or draw it", Args: cobra.ExactArgs(1),
		Long: "show prints a plan with its tasks. ID is the id of a plan, or last. Retried tasks are left out:\n" +
			"their retries replace them. Of a job it prints how far it is, as show does.",
		Example: "  tdf-manager plan show last\n  tdf-manager plan show 3 --graph text\n" +
			"  tdf-manager plan show 3 --graph dot | dot -Tsvg > plan.svg",
		RunE: a.withManager(func(ctx context.Context, s *session) error { return s.showPlan(ctx, graph) }),
	})
	graphFlag(cmd, &graph)
	return cmd
}

func (s *session) showPlan(ctx context.Context, graph string) error {
	p, err := s.readPlan(ctx, s.args[0])
	switch {
	case err != nil:
		return err
	case p.Job && graph != "":
		return cli.Usagef("plan %d is a job: there is nothing to draw, as its tasks need nothing of one another; list them with %s",
			p.ID, s.command("ls %s", plans.JobName(p.ID)))
	case p.Job:
		return s.showAsJob(ctx, p)
	case graph != "":
		return drawPlan(ctx, s, p, graph)
	}
	shown, err := s.manager.ViewPlan(ctx, p.ID)
	if err != nil {
		return s.noPlan(err)
	}
	return s.result(shown, func() {
		printPlan(s, shown.Plan, shown.Estimate)
		listSteps(s, shown.Steps)
		listPlanned(s, shown.ID, shown.Tasks)
	})
}

// What show lists of tasks; a graph has all of them.
const (
	mostShown = 100
	mostInput = 40 // characters of an input
)

func printPlan(s *session, p *task.Plan, ahead *manager.PlanEstimate) {
	table := s.out.Table()
	table.Row("plan", p.ID)
	table.Row("name", dashText(p.Name))
	table.Row("state", p.State)
	table.Row("on_failure", p.OnFailure)
	table.Row("tasks", planCounts(p))
	table.Row("created", when(p.Created))
	table.Row("ready", when(p.Ready))
	table.Row("over", when(p.Over))
	if ahead != nil && ahead.ToRun > 0 {
		left := leftText(ahead)
		if p.Growing > 0 {
			left += ", without the steps that are not opened yet"
		}
		table.Row("left", left)
		table.Row("critical path", pathText(ahead))
	}
	table.Flush()
	if remedy := s.planRemedy(p); remedy != "" {
		s.printf("\n%s\n", remedy)
	}
}

func listPlanned(s *session, plan task.PlanID, tasks []manager.PlannedTask) {
	if len(tasks) == 0 {
		return
	}
	s.printf("\n")
	table := s.out.Table("ID", "STEP", "STATE", "PROGRAM", "INPUT", "NEEDS")
	for i := range tasks[:min(len(tasks), mostShown)] {
		t := &tasks[i]
		table.Row(t.ID, dashText(t.Step), t.State, t.Program, dashText(clean.Shorten(t.Input, mostInput)), dashText(needsText(t.Needs)))
	}
	table.Flush()
	if len(tasks) > mostShown {
		s.note("these are the first %d of %d tasks; all of them: %s", mostShown, len(tasks), s.command("plan show %d --graph text", plan))
	}
}

// needsText is for people: "3-5, 7 any".
func needsText(needs []task.Need) string {
	var parts []string
	for _, on := range []task.When{task.NeedsSuccess, task.NeedsAny, task.NeedsFailure} {
		var ids []int64
		for _, n := range needs {
			if n.On == on {
				ids = append(ids, n.Task)
			}
		}
		switch text := clean.Ranges(ids); {
		case text == "":
		case on == task.NeedsSuccess:
			parts = append(parts, text)
		default:
			parts = append(parts, text+" "+string(on))
		}
	}
	return strings.Join(parts, ", ")
}

// drawPlan draws the tasks of a plan.
func drawPlan(ctx context.Context, s *session, p *task.Plan, form string) error {
	tasks, err := s.view(p.ID).Tasks(ctx)
	if err != nil {
		return err
	}
	d := &planview.Drawing{Name: planName(p)}
	for _, t := range tasks {
		d.Nodes = append(d.Nodes, plannedNode(t))
	}
	return s.drawn(d.Write(form))
}

func plannedNode(t *planview.Task) planview.Node {
	n := planview.Node{ID: strconv.FormatInt(t.ID, 10), Label: t.Name(), State: t.State()}
	if t.Input != "" {
		n.Label += " " + clean.Shorten(t.Input, mostInput)
	}
	for _, need := range t.Needs {
		a := planview.Arrow{ID: strconv.FormatInt(need.Task, 10)}
		if need.On != task.NeedsSuccess {
			a.When = string(need.On)
		}
		n.From = append(n.From, a)
	}
	return n
}
