package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planFile writes a plan file.
func planFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const pipeline = `name: sums of ${params.day}
params: {day: , parts: [eu, us]}
defaults: {program: echo, retry_delay: 0, timeout: 1m}
steps:
  fetch: {input: "${params.day}"}
  count:
    foreach: {param: parts}
    argv: ["${item}"]
    needs: fetch
    labels: {}
  report: {needs: [count, fetch]}
`

// TestPlanCheck needs neither Redis nor a configuration.
func TestPlanCheck(t *testing.T) {
	t.Parallel()
	file := planFile(t, pipeline)
	check := func(args ...string) result {
		return execute(t.Context(), pipeline, append([]string{"plan", "check", "-p", "day=mon"}, args...)...)
	}
	if r := check(file); r.code != 0 || r.out != file+`: plan "sums of mon": 3 steps, 4 tasks`+"\n" {
		t.Errorf("%+v", r)
	}
	if r := check("-", "-p", "parts=a,b,c"); r.out != `stdin: plan "sums of mon": 3 steps, 5 tasks`+"\n" {
		t.Errorf("%+v", r)
	}
	if r := check(file, "--graph", "text"); r.out != "1 fetch (echo)\n  2 count (echo) x2  <- 1\n    3 report (echo)  <- 2, 1\n" {
		t.Errorf("%+v", r)
	}
	object := oneValue(t, check(file, "--json").out).(map[string]any)
	tasks := object["tasks"].([]any)
	last := tasks[3].(map[string]any)
	if object["name"] != "sums of mon" || len(tasks) != 4 || last["program"] != "echo" || last["step"] != "report" ||
		last["needs"].([]any)[1].(map[string]any)["task"] != 2.0 || tasks[2].(map[string]any)["item"] != "us" {
		t.Errorf("%v", object)
	}
}

func TestPlanCheckRefuses(t *testing.T) {
	t.Parallel()
	step := "steps:\n  a:\n    program: p\n"
	for _, c := range []struct {
		text string
		args []string
		say  []string
	}{
		{pipeline, nil, []string{"p.yaml:2: params.day: has no default and was not given; give it as a parameter, day=VALUE"}},
		{step, fields("-p day=1"), []string{"p.yaml: unknown parameter day=1"}},
		{step, fields("-p day"), []string{`-p "day" is not a parameter; write name=value`}},
		{step, fields("-p d=1 -p d=2"), []string{"parameter d is given twice"}},
		{step, fields("--graph svg"), []string{`--graph "svg" is not a form of a graph; write text, dot or mermaid`}},
		{step + "    max_fails: many\n", nil, []string{`p.yaml:4: steps.a: field max_fails: "many" is not a whole number`}},
		{step + "    labels: [x]\n", nil, []string{`p.yaml:4: steps.a: `, `"x"`}},
		{step + "    queue: a/b\n", nil, []string{"p.yaml:4: steps.a: field queue: "}},
		{step + "    max_fail: 1\n", nil, []string{`p.yaml:4: steps.a: field "max_fail" is unknown; did you mean "max_fails"?`}},
		{"defaults: {charge: me, timeout: -1}\n" + step + "  b: {program: a/b, timeout: 5}\n", nil, []string{`p.yaml:1: steps.a: field charge: "me" is not`, `steps.b: field charge`}},
		{"steps:\n  a: {program: a/b}\n", nil, []string{`p.yaml:2: steps.a: field program: "a/b" is not`}},
		{step + "    needs: b\n  b: {program: p, needs: a}\n", nil, []string{"a -> b -> a"}},
	} {
		r := execute(t.Context(), "", append([]string{"plan", "check", planFile(t, c.text)}, c.args...)...)
		if r.code != 2 || r.out != "" {
			t.Errorf("%q %q: ended with %d: %s", c.text, c.args, r.code, r.out)
		}
		wantText(t, r.err, c.say...)
	}
	if r := execute(t.Context(), "", "plan", "check", "/no/such.yaml"); r.code != 2 || !strings.Contains(r.err, "read plan: open /no/such.yaml: no such file or directory; write the path") {
		t.Errorf("%+v", r)
	}
}
