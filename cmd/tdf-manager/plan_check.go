package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	planfile "github.com/tdf-go/tdf/plan/file"
)

func (a *app) planCheck() *cobra.Command {
	var source planSource
	var graph string
	cmd := &cobra.Command{
		Use: "check FILE", Short: "Check a plan file and say what it would run; without Redis",
		Long: "check reads a plan file (- is stdin), fills in its parameters and checks every task, but for whether its\n" +
			"queue is there. What is wrong is said with its line.",
		Example: "  tdf-manager plan check pipeline.yaml -p day=2026-11-21\n  tdf-manager plan check pipeline.yaml --graph mermaid",
	}
	source.flags(cmd)
	graphFlag(cmd, &graph)
	asJSON := jsonFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("graph", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := source.read(cmd, args[0], time.Now()); err != nil {
			return err
		}
		switch out := cmd.OutOrStdout(); {
		case graph != "":
			return draw(out, source.file.Drawing(source.plan), graph)
		case *asJSON:
			return cli.WriteJSON(out, source.object())
		default:
			return printf(out, "%s: plan %q: %s\n", cli.Safe(source.file.Path), source.plan.Name, source.stepsText())
		}
	}
	return cmd
}

func graphFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "graph", "", "draw what needs what: text, dot (for Graphviz) or mermaid (for Markdown)")
}

// draw prints a graph in the form asked for.
func draw(w io.Writer, d *planfile.Drawing, form string) error {
	for i := range d.Nodes {
		d.Nodes[i].Label = cli.Safe(d.Nodes[i].Label)
	}
	d.Name = cli.Safe(d.Name)
	text, err := d.Write(form)
	if err != nil {
		return cli.Usagef("--graph %w", err)
	}
	return printf(w, "%s", text)
}

// object is what the plan would run. The names are those of the file, but that
// needs are places of tasks in the list, from 0.
func (p *planSource) object() map[string]any {
	later := make([]map[string]any, len(p.plan.Later))
	for i := range p.plan.Later {
		later[i] = laterObject(&p.plan.Later[i])
	}
	object := map[string]any{nameField: p.plan.Name, "on_failure": p.plan.OnFailure, "tasks": objectsOf(p.plan.Tasks, fileTask)}
	if len(later) > 0 {
		object["later"] = later
	}
	return object
}

func fileTask(t *planfile.Task) map[string]any {
	task := map[string]any{stepField: t.Step, "args": t.Args}
	if t.Item != "" && t.Item != manager.LineItem {
		task["item"] = t.Item
	}
	for _, f := range t.Fields {
		task[f.Name] = f.JSON()
		if f.Name == sourceField {
			task[f.Name] = clean.Source(f.Value.Text)
		}
	}
	needs := make([]map[string]any, len(t.Needs))
	for j, n := range t.Needs {
		needs[j] = map[string]any{"task": n.Task, "when": n.When}
	}
	task["needs"] = needs
	return task
}

// laterObject is a step that is opened once the plan runs. Its needs are steps, and a line is ${item}.
func laterObject(l *planfile.Later) map[string]any {
	tasks := objectsOf(l.Tasks, func(t *planfile.Task) map[string]any {
		task := fileTask(t)
		for _, name := range []string{inputField, argvField} {
			if raw, is := task[name].(json.RawMessage); is {
				task[name] = json.RawMessage(strings.ReplaceAll(string(raw), `\u0000`, "${item}"))
			}
		}
		delete(task, "needs")
		return task
	})
	needs := make([]map[string]any, len(l.Needs))
	for i, n := range l.Needs {
		needs[i] = map[string]any{stepField: n.Step, "when": n.When}
	}
	object := map[string]any{stepField: l.Tasks[0].Step, "tasks": tasks, "needs": needs}
	if l.Lines != "" {
		object["lines"], object["most"] = l.Lines, l.Most
	}
	return object
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
