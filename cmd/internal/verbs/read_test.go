package verbs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
)

// played is a bench with five tasks: two succeeded, one of them in its second
// round, one failed, one timed out, and one still open.
func played(t *testing.T, flags ...string) *bench {
	t.Helper()
	b := newBench(t)
	for _, input := range []string{"ok", "fail", "slow", "again"} {
		b.must(slices.Concat([]string{"submit", "--program", "p", "--source", "rsync:run.sh", "--max-fails",
			map[bool]string{true: "1", false: "0"}[input == "again"], "--end-before", "inf"}, flags, []string{"--", input})...)
	}
	worktest.Drain(t, b.store, func(c *tasks.Claimed) worktest.Result {
		switch {
		case c.Spec.Input == "fail":
			return worktest.Result{Output: "half\n", Error: "one\ntwo\nthree\nfour\nfive\nsix \x1b[31mred\n"}
		case c.Spec.Input == "again" && c.Task.Round == 0:
			return worktest.Fail(c)
		}
		return worktest.Result{Output: "out\x00\xff\n", Overdue: c.Spec.Input == "slow"}
	})
	b.must("submit", "--program", "p", "--start-after", "4000000000", "--timeout", "90", "--", "x y")
	return b
}

func TestLs(t *testing.T) {
	t.Parallel()
	b := played(t)
	out := b.must("ls")
	wantText(t, out, "ID", "PROGRAM", "5   open", `"x y"`, "timed_out", "failed", "succeeded")
	if lines := strings.Count(out, "\n"); lines != 6 {
		t.Errorf("%d lines, want a head and 5 tasks:\n%s", lines, out)
	}
	if out := b.must("ls", "--state", "failed,timed_out"); strings.Count(out, "\n") != 3 {
		t.Errorf("failed and timed_out:\n%s", out)
	}
	r := b.run("ls", "--limit", "1")
	wantText(t, r.err, "3 more tasks are archived; see them with --limit 0")
	r = b.run("ls", "--state", "succeeded", "--limit", "1")
	wantText(t, r.err, "more tasks than these are archived; see them with --limit 0")

	list := b.value(0, "ls").([]any)
	first := list[0].(map[string]any)
	if len(list) != 5 || first["id"] != 5.0 || first["state"] != "open" || first["end_before"] != "inf" ||
		first["timeout"] != 90.0 || fmt.Sprint(first["argv"]) != "[x y]" || first["round"] != 0.0 {
		t.Errorf("JSON: %v", first)
	}
}

// A task that waits for a manager and one that is archived are found by how they ended.
func TestLsByOutcome(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.must("submit", "--program", "p", "--archive", "manager", "--", "fail")
	worktest.Drain(t, b.store, worktest.Fail)
	list := b.value(0, "ls", "--state", "failed").([]any)
	one, two := list[0].(map[string]any), list[1].(map[string]any)
	if len(list) != 2 || one["state"] != "failed" || one["id"] != 6.0 || two["state"] != "archived" || two["outcome"] != "failed" {
		t.Errorf("JSON: %v", list)
	}
	if out := b.must("ls", "--state", "failed"); strings.Count(out, "failed") != 2 || strings.Contains(out, "archived") {
		t.Errorf("the state is not shown as the outcome:\n%s", out)
	}
	if list := b.value(0, "ls", "--state", "archived").([]any); len(list) != 4 {
		t.Errorf("%d tasks are archived, want 4: %v", len(list), list)
	}
}

func TestLsOnNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if list := b.value(0, "ls").([]any); len(list) != 0 {
		t.Errorf("JSON %v, want []", list)
	}
	if r := b.run("ls", "--state", "lost"); r.code != 2 || !strings.Contains(r.err, "timed_out") {
		t.Errorf("unknown state: %+v", r)
	}
	if r := b.run("ls", "--limit", "-1"); r.code != 2 {
		t.Errorf("negative limit: %+v", r)
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	b := played(t)
	out := b.must("show", "4")
	wantText(t, out, "state        archived (succeeded)", "round 0, worker w", "round 1, worker w", "failure", "it broke", "fails        1 (at most 1)",
		"open -> running", "end_before   inf")
	if strings.Contains(b.must("show", "2"), "\x1b") {
		t.Error("control characters of a task reach the terminal")
	}
	object := b.value(0, "show", "4").(map[string]any)
	for field, want := range map[string]any{
		"id": 4.0, "state": "archived", "outcome": "succeeded", "round": 1.0, "fails": 1.0, "max_fails": 1.0, "timeout": "inf", "end_before": "inf",
		"input": "again", "program": "p", "namespace": b.ns,
	} {
		if got := object[field]; got != want {
			t.Errorf("%s = %v (%T), want %v", field, got, got, want)
		}
	}
	if first := roundOf(t, object, 0); first["error"] != "it broke\n" || first["worker"] != "w" {
		t.Errorf("round 0: %v", first)
	}
	stamps, _ := roundOf(t, object, 1)["stamps"].(map[string]any)
	if ended := instant(t, stamps["succeeded"]); ended.Before(instant(t, object["created"])) {
		t.Errorf("ended at %s: %v", ended, object)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	b := played(t)
	for _, c := range []struct{ args, want string }{
		{"1", "out\x00\xff\n"}, {"2", "half\n"}, {"2 --stderr", "one\ntwo\nthree\nfour\nfive\nsix \x1b[31mred\n"},
		{"4", "out\x00\xff\n"}, {"4 --round 0", ""}, {"4 --round 0 --stderr", "it broke\n"},
	} {
		if out := b.must(append([]string{"logs"}, strings.Fields(c.args)...)...); out != c.want {
			t.Errorf("logs %s: %q, want %q", c.args, out, c.want)
		}
	}
	object := b.value(0, "logs", "2").(map[string]any)
	if object["id"] != 2.0 || object["round"] != 0.0 || object["output"] != "half\n" || object["error"] == "" {
		t.Errorf("JSON: %v", object)
	}
	if r := b.run("logs", "5"); r.code != 1 || !strings.Contains(r.err, "not been run") {
		t.Errorf("task not run yet: %+v", r)
	}
	if r := b.run("logs", "4", "--round", "2"); r.code != 2 || !strings.Contains(r.err, "no round 2") {
		t.Errorf("no such round: %+v", r)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	b := played(t)
	wantText(t, b.must("stats"), "succeeded   0      2\n", "failed      0      1\n", "archived    4\n", "total       5", "left        1")
	object := b.value(0, "stats").(map[string]any)
	states, ended := object["states"].(map[string]any), object["ended"].(map[string]any)
	if object["namespace"] != b.ns || object["total"] != 5.0 || object["left"] != 1.0 || ended["timed_out"] != 1.0 || states["archived"] != 4.0 {
		t.Errorf("JSON: %v", object)
	}
	if r := b.run("stats", "--watch", "--json"); r.code != 2 {
		t.Errorf("--watch --json: %+v", r)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	b := played(t)
	wantText(t, b.must("verify"), "5 tasks checked", "no violations")
	if object := b.value(0, "verify").(map[string]any); object["task_id"] != 5.0 || len(object["violations"].([]any)) != 0 {
		t.Errorf("JSON: %v", object)
	}
	b.srv.Do(t, "ZADD", b.ns+":open", "0", "1")
	if r := b.run("verify"); r.code != 1 || !strings.Contains(r.out, "task 1: sets") || r.err != "" {
		t.Errorf("%+v", r)
	}
	object := b.value(1, "verify").(map[string]any)
	if one := object["violations"].([]any)[0].(map[string]any); one["id"] != 1.0 || one["kind"] != "sets" {
		t.Errorf("JSON: %v", object)
	}
}

// A45: flush asks first, and leaves everything else alone.
func TestFlush(t *testing.T) {
	t.Parallel()
	b, other := played(t), played(t)
	if r := b.run("flush"); r.code != 2 || !strings.Contains(r.err, "all 5 tasks") || !strings.Contains(r.err, "--yes") {
		t.Errorf("without --yes: %+v", r)
	}
	wantText(t, b.must("stats"), "total       5")
	wantText(t, b.must("flush", "--yes"), "deleted ", "keys of namespace "+b.ns)
	wantText(t, b.must("stats"), "total       0")
	wantText(t, other.must("stats"), "total       5")
}
