package verbs

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	planfile "github.com/tdf-go/tdf/plan/file"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func (a *app) planCheck() *cobra.Command {
	var source planSource
	var graph string
	cmd := withJSON(&cobra.Command{
		Use: "check FILE", Short: "Check a plan file and say what it would run; without Redis",
		Long: "check reads a plan file (- is stdin), fills in its parameters and checks every task, except whether\n" +
			"its queue exists. Errors name their lines.",
		Example: "  tdf-manager plan check pipeline.yaml -p day=2026-11-21\n  tdf-manager plan check pipeline.yaml --graph mermaid",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.session(cmd, args).checkPlan(&source, graph) },
	})
	source.flags(cmd)
	graphFlag(cmd, &graph)
	return cmd
}

func (s *session) checkPlan(source *planSource, graph string) error {
	if err := source.read(s, time.Now()); err != nil {
		return err
	}
	if graph != "" {
		return draw(s, source.file.Drawing(source.plan), graph)
	}
	return s.result(source.plan, func() {
		s.printf("%s: plan %q: %s\n", cli.Safe(source.file.Path), source.plan.Name, source.stepsText())
	})
}

func graphFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "graph", "", "draw what needs what: text, dot (for Graphviz) or mermaid (for Markdown)")
	cmd.MarkFlagsMutuallyExclusive("graph", jsonName)
}

// draw prints a graph in the form asked for.
func draw(s *session, d *planfile.Drawing, form string) error {
	for i := range d.Nodes {
		d.Nodes[i].Label = cli.Safe(d.Nodes[i].Label)
	}
	d.Name = cli.Safe(d.Name)
	text, err := d.Write(form)
	if err != nil {
		return cli.Usagef("--graph %w", err)
	}
	s.printf("%s", text)
	return s.out.Err()
}

// stepsText is for people: "3 steps, 5 tasks", "3 steps, 2 tasks and one for each line of list".
func (p *planSource) stepsText() string {
	tasks, lines := len(p.plan.Tasks), ""
	for i := range p.plan.Later {
		l := &p.plan.Later[i]
		switch {
		case l.Lines == "":
			tasks += len(l.Tasks)
		case lines == "":
			lines = " and one for each line of " + l.Lines
		default:
			lines += " and of " + l.Lines
		}
	}
	return fmt.Sprintf("%d steps, %d tasks", len(p.file.Steps), tasks) + lines
}

// planSource is a plan file on a command line, with values of its parameters.
type planSource struct {
	params []string

	file  *planfile.File
	plan  *planfile.Plan
	specs []task.Spec
	later []manager.LaterStep
}

func (p *planSource) flags(cmd *cobra.Command) {
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().StringArrayVarP(&p.params, "param", "p", nil,
		"name=value of a parameter of the file, name=a,b,c of one that is a list; may be repeated")
}

// read reads and checks the file (- is stdin), but for what only Redis knows. now
// is for times such as +10m.
func (p *planSource) read(s *session, now time.Time) error {
	given, err := parsePairs(p.params, "-p %q is not a parameter; write name=value such as -p day=2026-11-21",
		"parameter %[1]s is given twice; give it once, a list as %[1]s=a,b,c")
	if err != nil {
		return err
	}
	data, path, err := readPlanFile(s)
	if err != nil {
		return err
	}
	if p.file, err = planfile.Parse(path, data, taskFields()); err != nil {
		return fmt.Errorf("%w", err)
	}
	if p.plan, err = p.file.Expand(given); err != nil {
		return fmt.Errorf("%w", err)
	}
	return p.makeSpecs(now)
}

// largestPlan bounds a plan file, in bytes.
const largestPlan = 16 << 20

func readPlanFile(s *session) (data []byte, name string, err error) {
	in, name, err := s.open(s.args[0])
	if err != nil {
		err = fmt.Errorf("%w; write the path of a plan file, or - for stdin", err)
	} else {
		defer in.Close()
		data, err = io.ReadAll(io.LimitReader(in, largestPlan+1))
	}
	if err == nil && len(data) > largestPlan {
		err = fmt.Errorf("%s has more than %d bytes; make several plans", name, largestPlan)
	}
	if err != nil {
		return nil, name, cli.WithCode(cli.ExitUsage, fmt.Errorf("read plan: %w", err))
	}
	return data, name, nil
}

// makeSpecs makes the tasks, as submit does. The error is a planfile.Errors.
func (p *planSource) makeSpecs(now time.Time) error {
	var all planfile.Errors
	p.specs = p.specsOf(p.plan.Tasks, now, &all)
	p.later = make([]manager.LaterStep, len(p.plan.Later))
	for i := range p.plan.Later {
		from, to := &p.plan.Later[i], &p.later[i]
		*to = manager.LaterStep{Name: from.Tasks[0].Step, Lines: from.Lines, Most: from.Most, Specs: p.specsOf(from.Tasks, now, &all)}
		for _, n := range from.Needs {
			to.Needs = append(to.Needs, task.StepNeed{Step: n.Step, On: n.When})
		}
	}
	if len(all) > 0 {
		return all
	}
	bare := slices.Clone(p.specs) // they have no plan yet in which there are others
	for i := range bare {
		bare[i].Needs = nil
	}
	if err := p.blame(manager.CheckSpecs(bare), p.plan.Tasks); err != nil {
		return err
	}
	return p.blame(manager.CheckLater(p.later), p.laterTasks())
}

// specsOf makes tasks, and adds an error for each step in which some cannot be.
func (p *planSource) specsOf(tasks []planfile.Task, now time.Time, all *planfile.Errors) []task.Spec {
	wrong := map[string]bool{} // steps: one error of each is enough
	specs := make([]task.Spec, len(tasks))
	for i := range tasks {
		spec, err := taskSpec(&tasks[i], now)
		if err != nil && !wrong[tasks[i].Step] {
			wrong[tasks[i].Step] = true
			*all = append(*all, p.at(&tasks[i], err))
		}
		specs[i] = spec
	}
	return specs
}

// laterTasks are the tasks of all steps that are opened later.
func (p *planSource) laterTasks() []planfile.Task {
	var tasks []planfile.Task
	for i := range p.plan.Later {
		tasks = append(tasks, p.plan.Later[i].Tasks...)
	}
	return tasks
}

// blame says in which line an error about one of the tasks is.
func (p *planSource) blame(err error, tasks []planfile.Task) error {
	if spec, ok := errors.AsType[*manager.SpecError](err); ok {
		return planfile.Errors{p.at(&tasks[spec.Index], spec.Err)}
	}
	return err
}

func taskSpec(from *planfile.Task, now time.Time) (task.Spec, error) {
	spec := task.Spec{Args: from.Args, Step: from.Name()}
	for i := range from.Fields {
		if err := spec.SetJSON(from.Fields[i].Name, from.Fields[i].JSON(), now); err != nil {
			return task.Spec{}, err
		}
	}
	for _, n := range from.Needs {
		spec.Needs = append(spec.Needs, task.Need{Index: n.Task, On: n.When})
	}
	return spec, nil
}

// at says in which line an error about a task is: that of the field it names.
func (p *planSource) at(task *planfile.Task, err error) *planfile.Error {
	e := &planfile.Error{File: p.file.Path, Line: task.Line, Field: "steps." + task.Step, Err: err}
	name := ""
	if field, ok := errors.AsType[*statemachine.FieldError](err); ok {
		name = field.Field
	} else if errors.Is(err, manager.ErrNoQueue) {
		name = queueField
	}
	for i := range task.Fields {
		if task.Fields[i].Name == name {
			e.Line = task.Fields[i].Line
		}
	}
	return e
}
