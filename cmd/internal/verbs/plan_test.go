package verbs

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// broken has a step that fails until it is mended, and one that comes after it.
const broken = `name: broken
defaults: {retry_delay: 0, max_fails: 0}
steps:
  fetch: {program: echo, input: a}
  load: {program: flaky, input: b, needs: fetch}
  alarm: {program: echo, input: "!", needs: [{step: load, when: failure}]}
  report: {program: echo, input: c, needs: [{step: load}, {step: fetch, when: any}]}
`

func (b *bench) planState(id, state string) {
	b.t.Helper()
	wait.Eventually(b.t, limit, func() bool {
		return b.value(0, "plan", "show", id).(map[string]any)["state"] == state
	}, "plan %s is not %s", id, state)
}

func TestPlanRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.planCrew()
	r := b.run("plan", "run", planFile(t, pipeline), "-p", "day=mon")
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	wantText(t, r.out, "plan 1 (sums of mon): 3 steps, 4 tasks\n", "plan 1 (sums of mon) completed; 4 of 4 tasks have ended: succeeded 4\n")
	wantText(t, b.must("show", "4"), "plan             1\n", "step             report\n", "needs            1-3\n", "eu+mon+us+mon+mon") // each result is one argument, in the order of the needs
	wantText(t, b.must("plan", "ls"), "ID", "1   sums of mon  completed  4      0     succeeded 4")
	wantText(t, b.must("plan", "show", "last"), "on_failure  cancel", "4   report    succeeded  echo     -      1-3", "completed")
	if text := b.must("plan", "show", "1", "--graph", "text"); !strings.Contains(text, "  2 count[1] (echo) eu  succeeded  <- 1\n") {
		t.Error(text)
	}
	wantText(t, b.must("plan", "show", "1", "--graph", "dot"), `digraph "plan 1 (sums of mon)"`, "n3 -> n4")
	object := b.value(0, "plan", "run", planFile(t, pipeline), "-p", "day=mon").(map[string]any)
	if object["id"] != 2.0 || object["state"] != "completed" || object["left"] != 0.0 || len(object["first_unsuccessful"].([]any)) != 0 {
		t.Errorf("%v", object)
	}
	if list := b.value(0, "plan", "ls", "--limit", "1").([]any); len(list) != 1 || list[0].(map[string]any)["id"] != 2.0 {
		t.Errorf("%v", list)
	}
}

func TestPlanRunFailsAndIsRetried(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	crew := b.planCrew()
	r := b.run("plan", "run", planFile(t, broken))
	if r.code != 1 {
		t.Fatalf("%+v", r)
	}
	wantText(t, r.out, "plan 1 (broken) failed; 4 of 4 tasks have ended: succeeded 2  failed 1  cancelled 1\n",
		"\ntask 2 failed\n    it broke\n", "\ntdf-manager plan retry 1 runs again what did not succeed")
	if strings.Contains(r.out, "task 4") {
		t.Errorf("what was cancelled for another task is no cause: %s", r.out)
	}
	crew.mended.Store(true)
	wantText(t, b.must("plan", "retry", "1", "--dry-run"), "plan 1 (broken): would open 2 again: 2,4\n")
	wantText(t, b.must("plan", "retry", "1"), "plan 1 (broken): opened 2 again: 2,4 as 5-6\n")
	b.planState("1", "completed")
	wantText(t, b.must("show", "6"), "c+b+a+a")
	if text := b.must("plan", "show", "1", "--graph", "text"); !strings.Contains(text, "  5 load (flaky) b  succeeded  <- 1\n") || strings.Contains(text, "2 load") {
		t.Errorf("a retry does not stand for what it repeats:\n%s", text)
	}
	wantText(t, b.must("plan", "show", "1"), "3   alarm   succeeded  echo     !      5 failure")
	wantText(t, b.must("plan", "retry", "1"), "no task needs a retry")
}

func TestPlanRunHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	crew := b.planCrew()
	r := b.run("plan", "run", planFile(t, "on_failure: hold\n"+broken))
	if r.code != 1 {
		t.Fatalf("%+v", r)
	}
	wantText(t, r.out, "plan 1 (broken) held; ", "\ntask 2 failed\n    it broke\n",
		"it is held because task 2 failed; see tdf-manager logs 2 --stderr, then tdf-manager retry 2")
	crew.mended.Store(true)
	b.must("retry", "2")
	b.planState("1", "completed")
}

func TestPlanSubmitOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := planFile(t, pipeline)
	submit := []string{"plan", "submit", file, "-p", "day=mon", "--key", "monday"}
	for range 2 {
		if out := b.must(submit...); out != "1\n" {
			t.Errorf("%q", out)
		}
	}
	if list := b.value(0, "plan", "ls").([]any); len(list) != 1 || list[0].(map[string]any)["total"] != 4.0 {
		t.Errorf("%v", list)
	}
	if object := b.value(0, submit...).(map[string]any); object["plan"] != 1.0 || object["tasks"] != 4.0 {
		t.Errorf("%v", object)
	}
	for name, other := range map[string][]string{
		"more parts": append(submit, "-p", "parts=a,b,c"), "another day": {"plan", "submit", file, "-p", "day=tue", "--key", "monday"},
	} {
		r := b.run(other...)
		if r.code != 2 || !strings.Contains(r.err, `--key "monday" was used for plan 1, which has other tasks`) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if list := b.value(0, "plan", "ls").([]any); len(list) != 1 {
		t.Errorf("another plan was made: %v", list)
	}
}

func TestPlanSteering(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := strings.TrimSpace(b.must("plan", "submit", planFile(t, pipeline), "-p", "day=mon"))
	wantText(t, b.must("plan", "hold", id, "--reason", "late"), "plan "+id+" (sums of mon): held; 0 of 4 tasks have ended\n")
	wantText(t, b.must("plan", "show", id), "state          held", "it is held by ", ": late; tdf-manager plan resume "+id, "1   fetch     blocked")
	if b.value(0, "plan", "resume", "last").(map[string]any)["state"] != "ready" {
		t.Error("it is not resumed")
	}
	wantText(t, b.must("plan", "cancel", id), ": cancelled; 4 of 4 tasks have ended: cancelled 4\n")
	wantText(t, b.must("plan", "ls"), "cancelled  4      0     cancelled 4")
}

// TestPlanRunEndsWithACancelledPlan is about one that somebody else calls off.
func TestPlanRunEndsWithACancelledPlan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	run := b.start(t.Context(), "plan", "run", planFile(t, pipeline), "-p", "day=mon")
	run.says(t, run.out, "plan 1 (sums of mon): 3 steps")
	b.planState("1", "ready")
	b.must("plan", "cancel", "1")
	run.ends(t, 1)
	wantText(t, run.out.String(), "plan 1 (sums of mon) cancelled; 4 of 4")
}

// TestPlanRunInterrupted leaves the plan as it is, and says so.
func TestPlanRunInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	run := b.start(ctx, "plan", "run", planFile(t, pipeline), "-p", "day=mon")
	run.says(t, run.out, "plan 1 (sums of mon): 3 steps")
	interrupt(&cli.SignalError{Signal: syscall.SIGINT})
	run.ends(t, cli.ExitInterrupt)
	wantText(t, run.err.String(), "plan 1 goes on without being watched; see tdf-manager plan show 1")
	b.planState("1", "ready")
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good := planFile(t, pipeline)
	b.must("plan", "submit", good, "-p", "day=mon")
	b.must("plan", "cancel", "1")
	lost := planFile(t, "steps:\n  a: {program: p}\n  b:\n    program: p\n    queue: nihtly\n")
	b.must("queue", "add", "nightly")
	for args, want := range map[string]string{
		"submit " + good:             "2 p.yaml:2: params.day",
		"submit " + good + " --key=": "2 --key is empty",
		"submit " + lost:             `2 p.yaml:5: steps.b: queue "nihtly": no such queue; did you mean "nightly"?`,
		"run " + lost:                "2 nightly",
		"show 7":                     "2 plan 7: ",
		"show x":                     `2 "x" is not the id of a plan; write one such as 3, or last`,
		"show 1 --graph svg":         "2 text, dot or mermaid",
		"ls --limit 0":               "2 --limit 0",
		"cancel 7":                   "2 see tdf-manager plan ls",
		"hold 1":                     "1 plan 1 is cancelled",
		"resume 1":                   "1 plan 1 is cancelled",
		"retry 1":                    "1 plan 1 is cancelled: the state of the plan does not allow it; see tdf-manager plan show 1, or submit its file again",
		"":                           "2 command is missing",
	} {
		code, say, _ := strings.Cut(want, " ")
		r := b.run(append([]string{"plan"}, fields(args)...)...)
		if strconv.Itoa(r.code) != code || !strings.Contains(r.err, say) {
			t.Errorf("plan %s: ended with %d, want %s: %s", args, r.code, want, r.err)
		}
	}
	if list := b.value(0, "plan", "ls").([]any); len(list) != 1 {
		t.Errorf("a refused plan is there: %v", list)
	}
}

func TestPlanLsOfNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if r := b.run("plan", "ls"); r.code != 0 || r.out != "" || !strings.Contains(r.err, "plan submit FILE") {
		t.Errorf("%+v", r)
	}
	if r := b.run("plan", "show", "last"); r.code != 2 || !strings.Contains(r.err, "there is no plan yet") {
		t.Errorf("%+v", r)
	}
	if out := b.must("plan", "ls", "--json"); out != "[]\n" {
		t.Errorf("%q", out)
	}
}
