package file

import (
	"errors"
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

// TestTakeAlong: what steps name under upload is taken along once, and is the program of their tasks, or where their command runs.
func TestTakeAlong(t *testing.T) {
	t.Parallel()
	p := expanded(t, `params: {dir: a}
defaults: {upload: "${params.dir}"}
steps:
  list: {source: command:./list}
  each: {source: command:/bin/sh, foreach: {lines: list}, argv: ["${item}"]}
  own: {program: p, upload: b}
  several: {source: command:./c, upload: "${item}", foreach: [a, b]}
`, nil)
	sourcesOf := func() string {
		specs, later, err := p.Specs(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, s := range append(specs, later[0].Specs...) {
			all = append(all, s.Source)
		}
		return strings.Join(all, " ")
	}
	if got := sourcesOf(); strings.Count(got, strings.Repeat("0", 64)) != 5 {
		t.Errorf("before: %s", got)
	}
	var asked []string
	hash := map[string]string{"a": strings.Repeat("a", 64), "b": strings.Repeat("b", 64)}
	err := p.TakeAlong(func(name, program string) (string, error) {
		asked = append(asked, name+":"+program)
		return hash[name], nil
	})
	if got := strings.Join(asked, " "); err != nil || got != "a: b:p b:" {
		t.Errorf("asked for %s, %v", got, err)
	}
	want := strings.NewReplacer("A", "#sha256="+hash["a"], "B", "#sha256="+hash["b"]).Replace("command:./listA blob:sha256=" + hash["b"] +
		" command:./cA command:./cB command:/bin/shA")
	if got := sourcesOf(); got != want {
		t.Errorf("sources are\n%s, want\n%s", got, want)
	}
	err = p.TakeAlong(func(string, string) (string, error) { return "", errors.New("odd") })
	if text := err.Error(); text != "p.yaml:2: steps.list.upload: odd" {
		t.Errorf("error %s", text)
	}
}

// TestTakeAlongRefuses: what cannot be is told before anything is read.
func TestTakeAlongRefuses(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]string{
		"{program: p, source: 'rsync:run.sh', upload: a}":                         `field upload: "a" is not possible beside source`,
		"{source: command:../x, upload: a}":                                       `field source: "command:../x" is not a command in what upload takes along`,
		"{program: p, upload: ''}":                                                `field upload: "" is not the name of a directory or a file`,
		"{program: p, upload: [a, b]}":                                            `is not the name of a directory or a file`,
		"{source: command:./x}":                                                   "unless upload takes it along",
		"{source: 'command:x#sha256=" + strings.Repeat("a", 64) + "', upload: a}": "beside source",
	} {
		_, _, err := expanded(t, "steps:\n  s: "+step, nil).Specs(time.Now())
		if err == nil || !strings.Contains(err.Error(), "p.yaml:2: steps.s: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", step, err)
		}
	}
}

// Parameters of a task are a text in which those of the plan are filled in, before it is read as JSON.
func TestParams(t *testing.T) {
	t.Parallel()
	steps := func(day string) string {
		return "params: {day: " + day + "}\nsteps:\n  s: {program: p, params: '{\"day\": ${params.day}, \"n\": [1]}'}\n"
	}
	specs, _, err := expanded(t, steps("7"), nil).Specs(time.Now())
	if err != nil || string(specs[0].Params) != `{"day":7,"n":[1]}` {
		t.Errorf("%s, %v", specs[0].Params, err)
	}
	if _, _, err := expanded(t, steps("Mon"), nil).Specs(time.Now()); err == nil || !strings.Contains(err.Error(), "p.yaml:3: steps.s: field params: ") {
		t.Errorf("%v", err)
	}
}
