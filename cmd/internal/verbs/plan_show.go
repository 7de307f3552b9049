package verbs

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/ops/planview"
	planfile "github.com/tdf-go/tdf/plan/file"
	"github.com/tdf-go/tdf/task"
)

func (a *app) planShow() *cobra.Command {
	var graph string
	cmd := withJSON(&cobra.Command{
		Use: "show ID", Short: "Show a plan and its tasks, or draw it", Args: cobra.ExactArgs(1),
		Long: "show prints a plan with its tasks. ID is that of the plan, or last. Tasks that were retried are left out:\n" +
			"their retries stand for them.",
		Example: "  tdf-manager plan show last\n  tdf-manager plan show 3 --graph text\n" +
			"  tdf-manager plan show 3 --graph dot | dot -Tsvg > plan.svg",
		RunE: a.withManager(func(ctx context.Context, s *session) error { return s.showPlan(ctx, graph) }),
	})
	graphFlag(cmd, &graph)
	return cmd
}

func (s *session) showPlan(ctx context.Context, graph string) error {
	p, err := s.readPlan(ctx, s.args[0])
	if err != nil {
		return err
	}
	if s.json {
		shown, err := s.manager.ViewPlan(ctx, p.ID)
		if err != nil {
			return s.noPlan(err)
		}
		s.out.JSON(shown)
		return nil
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
	steps, err := s.planSteps(ctx, p)
	if err != nil {
		return err
	}
	printPlan(s, p, &outlook{found})
	listSteps(s, steps)
	listPlanned(s, p, tasks)
	return nil
}

// input is what a task is called with.
func input(t *planview.Task) string { return task.InputText(t.Input, t.Argv) }

// What show lists of tasks; a graph has all of them.
const (
	mostShown = 100
	mostInput = 40 // characters of an input
)

func printPlan(s *session, p *task.Plan, ahead *outlook) {
	table := s.out.Table()
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
	table.Flush()
	if remedy := s.planRemedy(p); remedy != "" {
		s.printf("\n%s\n", remedy)
	}
}

func listPlanned(s *session, p *task.Plan, tasks []*planview.Task) {
	if len(tasks) == 0 {
		return
	}
	s.printf("\n")
	table := s.out.Table("ID", "STEP", "STATE", "PROGRAM", "INPUT", "NEEDS")
	for _, t := range tasks[:min(len(tasks), mostShown)] {
		table.Row(t.ID, dashText(t.Step), t.State(), t.Program, dashText(shorten(input(t), mostInput)), dashText(needsText(t.Needs)))
	}
	table.Flush()
	if len(tasks) > mostShown {
		s.note("these are the first %d of %d tasks; all of them: %s", mostShown, len(tasks), s.command("plan show %d --graph text", p.ID))
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
		switch text := ranges(ids); {
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
func drawPlan(s *session, p *task.Plan, tasks []*planview.Task, form string) error {
	d := &planfile.Drawing{Name: planName(p)}
	for _, t := range tasks {
		d.Nodes = append(d.Nodes, plannedNode(t))
	}
	return draw(s, d, form)
}

func plannedNode(t *planview.Task) planfile.Node {
	n := planfile.Node{ID: strconv.FormatInt(t.ID, 10), Label: t.Name(), State: t.State()}
	if input(t) != "" {
		n.Label += " " + shorten(input(t), mostInput)
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
