package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/task"
)

// Forms in which a [Drawing] can be written.
const (
	FormText    = "text"
	FormDOT     = "dot"     // for Graphviz
	FormMermaid = "mermaid" // for Markdown
)

// Drawing is a graph of steps or tasks to be looked at.
type Drawing struct {
	Name  string
	Nodes []Node
}

// Node is a step or a task of a drawing; it comes behind all that it needs.
type Node struct {
	// ID is one word of letters and digits, Label and State are for people and hold no line ends.
	ID, Label, State string
	From             []Arrow
}

// Arrow comes from a node that is needed, by its ID. When is empty for success.
type Arrow struct{ ID, When string }

// Write is the drawing in a form; the error names the forms there are.
func (d *Drawing) Write(form string) (string, error) {
	switch form {
	case FormText:
		return d.text(), nil
	case FormDOT:
		return d.dot(), nil
	case FormMermaid:
		return d.mermaid(), nil
	default:
		return "", fmt.Errorf("%q is not a form of a graph; write %s, %s or %s", form, FormText, FormDOT, FormMermaid)
	}
}

// deepest bounds how far a text goes to the right.
const deepest = 20

// text is a line for each node, further to the right than all that it needs.
func (d *Drawing) text() string {
	var out strings.Builder
	depth := map[string]int{}
	for _, n := range d.Nodes {
		for _, a := range n.From {
			depth[n.ID] = max(depth[n.ID], depth[a.ID]+1)
		}
		fmt.Fprintf(&out, "%s%s %s", strings.Repeat("  ", min(depth[n.ID], deepest)), n.ID, n.Label)
		if n.State != "" {
			out.WriteString("  " + n.State)
		}
		for i, a := range n.From {
			out.WriteString([]string{"  <- ", ", "}[min(i, 1)] + strings.TrimSpace(a.ID+" "+a.When))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// fills are the colours of states; others have none.
var fills = map[string]string{
	"succeeded": "#c8e6c9", "running": "#bbdefb", "executed": "#bbdefb", "open": "#fff9c4",
	"failed": "#ffcdd2", "timed_out": "#ffcdd2", "orphaned": "#ffcdd2", "expired": "#ffcdd2",
	"cancelled": "#e0e0e0", "terminated": "#e0e0e0", "skipped": "#e0e0e0",
}

func (n *Node) lines(between string, quoted func(string) string) string {
	if n.State == "" {
		return quoted(n.Label)
	}
	return quoted(n.Label) + between + quoted(n.State)
}

func (d *Drawing) dot() string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	var out strings.Builder
	fmt.Fprintf(&out, "digraph \"%s\" {\n  rankdir=LR\n  node [shape=box style=filled fillcolor=white]\n", quoted(d.Name))
	for _, n := range d.Nodes {
		fmt.Fprintf(&out, "  n%s [label=\"%s\"", n.ID, n.lines(`\n`, quoted))
		if fill := fills[n.State]; fill != "" {
			fmt.Fprintf(&out, ` fillcolor="%s"`, fill)
		}
		out.WriteString("]\n")
		for _, a := range n.From {
			fmt.Fprintf(&out, "  n%s -> n%s", a.ID, n.ID)
			if a.When != "" {
				fmt.Fprintf(&out, ` [label="%s" style=dashed]`, quoted(a.When))
			}
			out.WriteByte('\n')
		}
	}
	out.WriteString("}\n")
	return out.String()
}

func (d *Drawing) mermaid() string {
	quoted := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "`", "#96;", `\`, "#92;").Replace
	var out strings.Builder
	out.WriteString("flowchart LR\n")
	for _, n := range d.Nodes {
		fmt.Fprintf(&out, "  n%s[\"%s\"]\n", n.ID, n.lines("<br>", quoted))
		if fill := fills[n.State]; fill != "" {
			fmt.Fprintf(&out, "  style n%s fill:%s\n", n.ID, fill)
		}
		for _, a := range n.From {
			arrow := " --> "
			if a.When != "" {
				arrow = " -. " + a.When + " .-> "
			}
			fmt.Fprintf(&out, "  n%s%sn%s\n", a.ID, arrow, n.ID)
		}
	}
	return out.String()
}

// Drawing is the file by its steps, whose number of tasks is that of the plan made from it.
func (f *File) Drawing(p *Plan) *Drawing {
	tasks := map[string]int{}
	program := map[string]string{}
	all := slices.Clone(p.Tasks)
	for i := range p.Later {
		all = append(all, p.Later[i].Tasks...)
	}
	for _, t := range all {
		tasks[t.Step]++
		for _, field := range t.Fields {
			if field.Name == programField {
				program[t.Step] = field.Value.Text
			}
		}
	}
	d := &Drawing{Name: p.Name}
	number := map[string]string{}
	steps, _ := f.sorted()
	for i, s := range steps {
		number[s.Name] = strconv.Itoa(i + 1)
		label := s.Name
		if program[s.Name] != s.Name {
			label += " (" + program[s.Name] + ")"
		}
		switch {
		case s.forLines():
			label += " for each line"
		case s.Foreach != nil:
			label += fmt.Sprintf(" x%d", tasks[s.Name])
		}
		n := Node{ID: number[s.Name], Label: label}
		for _, need := range s.Needs {
			from := Arrow{ID: number[need.Step]}
			if need.When != task.NeedsSuccess {
				from.When = string(need.When)
			}
			n.From = append(n.From, from)
		}
		if s.forLines() {
			n.From = append(n.From, Arrow{ID: number[s.Foreach.Lines], When: linesField})
		}
		d.Nodes = append(d.Nodes, n)
	}
	return d
}
