package file

import (
	"fmt"
	"strconv"

	"github.com/tdf-go/tdf/internal/ops/planview"
	"github.com/tdf-go/tdf/task"
)

// Draw writes the steps of the plan and what they need as text, dot (for Graphviz) or mermaid (for Markdown), fit for a terminal.
// The error names these forms.
func (p *Plan) Draw(form string) (string, error) {
	d := p.drawing()
	return d.Write(form)
}

func (p *Plan) drawing() *planview.Drawing {
	tasks := map[string]int{}
	program := map[string]string{}
	for _, t := range p.all() {
		tasks[t.step]++
		for _, field := range t.fields {
			if field.name == programField {
				program[t.step] = field.value.text
			}
		}
	}
	d := &planview.Drawing{Name: p.Name}
	number := map[string]string{}
	steps, _ := p.from.sorted()
	for i, s := range steps {
		number[s.name] = strconv.Itoa(i + 1)
		label := s.name
		if p := program[s.name]; p != "" && p != s.name {
			label += " (" + p + ")"
		}
		switch {
		case s.forLines():
			label += " for each line"
		case s.foreach != nil:
			label += fmt.Sprintf(" x%d", tasks[s.name])
		}
		n := planview.Node{ID: number[s.name], Label: label}
		for _, need := range s.needs {
			from := planview.Arrow{ID: number[need.Step]}
			if need.When != task.NeedsSuccess {
				from.When = string(need.When)
			}
			n.From = append(n.From, from)
		}
		if s.forLines() {
			n.From = append(n.From, planview.Arrow{ID: number[s.foreach.lines], When: linesField})
		}
		d.Nodes = append(d.Nodes, n)
	}
	return d
}
