package verbs

import (
	"strings"
	"testing"
)

const lined = `name: lines of ${params.names}
params: {names: b a c}
defaults: {program: echo, retry_delay: 0, timeout: 1m}
steps:
  list: {program: split, input: "${params.names}"}
  count: {foreach: {lines: list, most: 3}, input: "${item} x"}
  report: {needs: [count, list]}
`

func TestPlanCheckLines(t *testing.T) {
	t.Parallel()
	file := planFile(t, lined)
	if r := execute(t.Context(), "", "plan", "check", file); r.out != file+`: plan "lines of b a c": 3 steps, 2 tasks and one for each line of list`+"\n" {
		t.Errorf("%+v", r)
	}
	object := oneValue(t, execute(t.Context(), "", "plan", "check", file, "--json").out).(map[string]any)
	later := object["later"].([]any)
	count := later[0].(map[string]any)
	task := count["tasks"].([]any)[0].(map[string]any)
	if len(object["tasks"].([]any)) != 1 || len(later) != 2 || count["lines"] != "list" || count["most"] != 3.0 || task["input"] != "${item} x" ||
		task["item"] != nil || later[1].(map[string]any)["needs"].([]any)[0].(map[string]any)["step"] != "count" {
		t.Errorf("%v", object)
	}
	for text, say := range map[string]string{
		strings.Replace(lined, `"${item} x"`, `x, queue: a/b`, 1):   "p.yaml:6: steps.count: field queue: ",
		strings.Replace(lined, `"${item} x"`, `x, max_fails: y`, 1): "p.yaml:6: steps.count: field max_fails: ",
	} {
		r := execute(t.Context(), "", "plan", "check", planFile(t, text))
		if r.code != 2 {
			t.Errorf("%+v", r)
		}
		wantText(t, r.err, say)
	}
}

// Nobody waits for the plan: the steps are in Redis from the submission on.
func TestPlanSubmitLines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := planFile(t, lined)
	if id := b.must("plan", "submit", file, "--key", "k"); id != "1\n" {
		t.Fatal(id)
	}
	wantText(t, b.must("plan", "show", "1"), "0 of 1 tasks have ended; 2 steps are not opened yet\n", "STEP", "TO BE OPENED\n",
		"count   waits for the lines of step list (task 1)\n", "report  waits for step count\n")
	steps := b.value(0, "plan", "show", "1").(map[string]any)["steps"].([]any)
	if first := steps[0].(map[string]any); len(steps) != 2 || first["state"] != "waits" || first["lines"] != "list" || first["opened"] != 0.0 {
		t.Errorf("%v", steps)
	}
	b.planCrew()
	b.planState("1", "completed")
	wantText(t, b.must("plan", "show", "1"), "5 of 5 tasks have ended: succeeded 5\n", "3   count[2]  succeeded  echo     a x    -\n")
	wantText(t, b.must("show", "5"), "b+x+a+x+c+x+b\n")
	if id := b.must("plan", "submit", file, "--key", "k"); id != "1\n" {
		t.Errorf("submitted again it is plan %s", id)
	}
}

// What cannot be opened is said, and plan retry looks again.
func TestPlanLinesAreTooMany(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.planCrew()
	r := b.run("plan", "run", planFile(t, lined), "-p", "names=a b c d")
	if r.code != 1 {
		t.Errorf("%+v", r)
	}
	wantText(t, r.out, "plan 1 (lines of a b c d) failed; 1 of 1 tasks have ended: succeeded 1; 2 steps were not opened\n",
		"step count: the result of task 1 has 4 lines, and may have 3; mend that, and then tdf-manager plan retry 1, or tdf-manager retry the task whose lines they are\n")
	wantText(t, b.must("plan", "show", "1"), "count   cannot be opened: step count: ")
	wantText(t, b.must("plan", "retry", "1"), "plan 1 (lines of a b c d): servers look again at its steps that could not be opened\n")
	b.planState("1", "failed")
	wantText(t, b.must("plan", "ls"), "lines of a b c d  failed  1      0     succeeded 1")
}
