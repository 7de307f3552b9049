package file

import (
	"strings"
	"testing"
)

func TestDrawing(t *testing.T) {
	t.Parallel()
	p := expanded(t, whole, nil)
	for form, want := range map[string]string{
		"text": "1 fetch\n  2 count x2  <- 1\n    3 report  <- 2 any, 1, 1\n",
		"dot": "digraph \"day 007\" {\n  rankdir=LR\n  node [shape=box style=filled fillcolor=white]\n" +
			"  n1 [label=\"fetch\"]\n  n2 [label=\"count x2\"]\n  n1 -> n2\n  n3 [label=\"report\"]\n" +
			"  n2 -> n3 [label=\"any\" style=dashed]\n  n1 -> n3\n  n1 -> n3\n}\n",
		"mermaid": "flowchart LR\n  n1[\"fetch\"]\n  n2[\"count x2\"]\n  n1 --> n2\n  n3[\"report\"]\n  n2 -. any .-> n3\n  n1 --> n3\n  n1 --> n3\n",
	} {
		if got, err := p.Draw(form); err != nil || got != want {
			t.Errorf("%s: %v\n%s", form, err, got)
		}
	}
	command := expanded(t, "steps: {one: {source: 'command:seq', input: 3}}", nil)
	if got, err := command.Draw("text"); err != nil || got != "1 one\n" {
		t.Errorf("a step without a program: %v\n%s", err, got)
	}
	if _, err := p.Draw("svg"); err == nil || !strings.Contains(err.Error(), "text, dot or mermaid") {
		t.Errorf("svg: %v", err)
	}
}
