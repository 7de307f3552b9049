package file

import (
	"strings"
	"testing"
	"time"
)

// TestSpecs: what is needed comes by its place, and a step for lines keeps the place of the line.
func TestSpecs(t *testing.T) {
	t.Parallel()
	p := expanded(t, `defaults: {source: "rsync:run.sh"}
steps:
  list: {program: p}
  each: {program: p, foreach: {lines: list, most: 7}, input: "x ${item}"}
  twice: {program: p, foreach: [a, b], needs: [{step: list, when: any}]}
`, nil)
	specs, later, err := p.Specs(time.Now())
	if err != nil || len(specs) != 3 || len(later) != 1 {
		t.Fatalf("%v, %+v, %+v", err, specs, later)
	}
	if s := specs[2]; s.Step != "twice[2]" || len(s.Needs) != 1 || s.Needs[0].Index != 0 || s.Needs[0].On != "any" {
		t.Errorf("%+v", s)
	}
	if l := later[0]; l.Name != "each" || l.Lines != "list" || l.Most != 7 || l.Specs[0].Input != "x \x00" {
		t.Errorf("%+v", l)
	}
}

// TestWrongSpecs: each step is told of once, in the line of the field.
func TestWrongSpecs(t *testing.T) {
	t.Parallel()
	p := expanded(t, `defaults: {source: "rsync:run.sh"}
steps:
  a:
    program: p
    foreach: [1, 2]
    timeout: long
  b:
    program: x/y
`, nil)
	_, _, err := p.Specs(time.Now())
	list, _ := err.(Errors) //nolint:errorlint // it is one
	if len(list) != 2 || list[0].Line != 6 || list[1].Line != 8 || !strings.Contains(err.Error(), "p.yaml:8: steps.b: ") {
		t.Errorf("%v", err)
	}
}
