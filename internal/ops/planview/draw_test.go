package planview

import (
	"strings"
	"testing"
)

// TestDrawingQuotes is about labels that the forms would take for something else.
func TestDrawingQuotes(t *testing.T) {
	t.Parallel()
	d := &Drawing{Name: `a"b`, Nodes: []Node{{ID: "7", Label: `say "x" \ <b> #` + "\a", State: "failed"}}}
	for form, want := range map[string]string{
		"text":    `7 say "x" \ <b> #\x07  failed`,
		"dot":     `label="say \"x\" \\ <b> #\\x07\nfailed" fillcolor="#ffcdd2"]`,
		"mermaid": `n7["say #quot;x#quot; #92; #lt;b#gt; #35;#92;x07<br>failed"]`,
	} {
		if got, err := d.Write(form); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v\n%s", form, err, got)
		}
	}
}
