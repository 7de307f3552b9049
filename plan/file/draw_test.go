package file

import (
	"strings"
	"testing"
)

func TestDrawing(t *testing.T) {
	t.Parallel()
	f := parsed(t, whole)
	p := expanded(t, whole, nil)
	for form, want := range map[string]string{
		FormText: "1 fetch\n  2 count x2  <- 1\n    3 report  <- 2 any, 1, 1\n",
		FormDOT: "digraph \"day 007\" {\n  rankdir=LR\n  node [shape=box style=filled fillcolor=white]\n" +
			"  n1 [label=\"fetch\"]\n  n2 [label=\"count x2\"]\n  n1 -> n2\n  n3 [label=\"report\"]\n" +
			"  n2 -> n3 [label=\"any\" style=dashed]\n  n1 -> n3\n  n1 -> n3\n}\n",
		FormMermaid: "flowchart LR\n  n1[\"fetch\"]\n  n2[\"count x2\"]\n  n1 --> n2\n  n3[\"report\"]\n  n2 -. any .-> n3\n  n1 --> n3\n  n1 --> n3\n",
	} {
		if got, err := f.Drawing(p).Write(form); err != nil || got != want {
			t.Errorf("%s: %v\n%s", form, err, got)
		}
	}
	if _, err := f.Drawing(p).Write("svg"); err == nil || !strings.Contains(err.Error(), "text, dot or mermaid") {
		t.Errorf("svg: %v", err)
	}
}

// TestDrawingQuotes is about labels that the forms would take for something else.
func TestDrawingQuotes(t *testing.T) {
	t.Parallel()
	d := &Drawing{Name: `a"b`, Nodes: []Node{{ID: "7", Label: `say "x" \ <b> #`, State: "failed"}}}
	for form, want := range map[string]string{
		FormText:    `7 say "x" \ <b> #  failed`,
		FormDOT:     `label="say \"x\" \\ <b> #\nfailed" fillcolor="#ffcdd2"]`,
		FormMermaid: `n7["say #quot;x#quot; #92; #lt;b#gt; #35;<br>failed"]`,
	} {
		if got, err := d.Write(form); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v\n%s", form, err, got)
		}
	}
}
