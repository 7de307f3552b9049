package planview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// Drawing is a graph of steps or tasks to be looked at.
type Drawing struct {
	Name  string
	Nodes []Node
}

// Node is a step or a task of a drawing; it comes behind all that it needs.
type Node struct {
	// ID is one word of letters and digits, Label and State are for people.
	ID, Label, State string
	From             []Arrow
}

// Arrow comes from a node that is needed, by its ID. When is empty for success.
type Arrow struct{ ID, When string }

// Write is the drawing as text, dot (for Graphviz) or mermaid (for Markdown), fit for a terminal. The error names these forms.
func (d *Drawing) Write(form string) (string, error) {
	safe := &Drawing{Name: clean.Line(d.Name, 0), Nodes: slices.Clone(d.Nodes)}
	for i := range safe.Nodes {
		safe.Nodes[i].Label = clean.Line(safe.Nodes[i].Label, 0)
	}
	switch form {
	case "text":
		return safe.text(), nil
	case "dot":
		return safe.dot(), nil
	case "mermaid":
		return safe.mermaid(), nil
	default:
		return "", fmt.Errorf("%q is not a form of a graph; write text, dot or mermaid", form)
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
