package main

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/wait"
	"github.com/tdf-go/tdf/internal/worktest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

func TestWaitForSuccess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.runWith(t.Context(), "1\n2\n3\n", "submit", "--program", "p", "--each-line", "-")
	done := make(chan result, 1)
	go func() { done <- b.run("wait") }()
	wait.Never(t, 50*time.Millisecond, func() bool { return len(done) > 0 }, "wait ends before the tasks")
	worktest.Drain(t, b.store, worktest.Echo)
	r := wait.Receive(t, limit, done, "wait does not end")
	if r.code != 0 || r.out != "3 of 3 tasks have ended: succeeded 3\n" {
		t.Errorf("%+v", r)
	}
}

func TestWaitForFailures(t *testing.T) {
	t.Parallel()
	b := played(t)
	r := b.run("wait", "1-4")
	if r.code != 1 {
		t.Errorf("ended with %d, want 1", r.code)
	}
	wantText(t, r.out, "4 of 4 tasks have ended: succeeded 2  failed 1  timed_out 1", "task 2 failed", "...\n    two", `six \x1b[31mred`,
		"task 3 timed_out", "tdf-manager logs 2 --stderr")
	object := b.value(1, "wait", "2,4").(map[string]any)
	first := object["first_unsuccessful"].([]any)[0].(map[string]any)
	if object["total"] != 2.0 || object["done"] != 2.0 || object["unsuccessful"] != 1.0 || object["timed_out"] != false ||
		first["id"] != 2.0 || first["state"] != "failed" || !strings.Contains(first["error"].(string), "six") {
		t.Errorf("JSON: %v", object)
	}
	if r := b.run("wait", "1", "4"); r.code != 0 {
		t.Errorf("only those that succeeded: %+v", r)
	}
}

func TestWaitTimesOut(t *testing.T) {
	t.Parallel()
	b := played(t)
	longEnough(t, func(timeout string) bool {
		r := b.run("wait", "all", "--timeout", timeout)
		if r.code != 4 || !strings.Contains(r.out, "timed out; ") {
			t.Errorf("%+v, want 4", r)
		}
		return strings.Contains(r.out, "4 of 5") && strings.Contains(r.out, "open 1")
	})
	if object := b.value(4, "wait", "5", "--timeout", "50ms").(map[string]any); object["timed_out"] != true || object["done"] != 0.0 {
		t.Errorf("JSON: %v", object)
	}
}

// longEnough tries ever longer timeouts until one is long enough for a first look.
func longEnough(t *testing.T, try func(timeout string) bool) {
	t.Helper()
	for timeout := 50 * time.Millisecond; !try(timeout.String()); timeout *= 2 {
		if timeout > time.Minute {
			t.Fatalf("%v are not long enough", timeout)
		}
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	b := played(t)
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		for _, verb := range []string{"wait", "stats --watch"} {
			ctx, send := signalled(sig)
			done := make(chan result, 1)
			go func() { done <- b.runWith(ctx, "", strings.Fields(verb)...) }()
			wait.Never(t, 50*time.Millisecond, func() bool { return len(done) > 0 }, "%s ends early", verb)
			send()
			if r := wait.Receive(t, limit, done, "%s does not end", verb); r.code != code {
				t.Errorf("%s: %+v, want %d", verb, r, code)
			}
		}
	}
}

// run archives what ends, in good order until a signal, and not beside a
// project's own manager.
func TestRun(t *testing.T) {
	t.Parallel()
	b := played(t)
	ctx, send := signalled(syscall.SIGTERM)
	run := b.start(ctx, "run")
	wait.Eventually(t, limit, func() bool { return processed(t, run.err.String()) >= 4 }, "nothing is archived: %s", run.err)
	send()
	run.ends(t, 0)
	log := run.err.String()
	wantText(t, log, `"message":"processed"`, `"manager":"tdf-manager"`)
	if n := processed(t, log); n != 4 {
		t.Errorf("the log says that %d tasks were processed, want 4:\n%s", n, log)
	}
	if c, err := b.store.Count(t.Context()); err != nil || c[statemachine.Archived] != 4 || c[statemachine.Open] != 1 {
		t.Errorf("%v, %v, want 4 in the archive", c, err)
	}
	if strings.Count(strings.SplitN(log, "\n", 2)[0], `"time"`) != 1 {
		t.Errorf("a log line has not one time: %s", log)
	}
	own := store.Presence{Instance: "i", Name: "adder"}
	if err := b.store.Appear(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if r := b.run("run"); r.code != 2 || !strings.Contains(r.err, "adder") || !strings.Contains(r.err, "--force") {
		t.Errorf("beside a manager: %+v", r)
	}
	ctx, send = signalled(syscall.SIGTERM)
	run = b.start(ctx, "run", "--force")
	run.says(t, run.err, `"message":"processed"`)
	send()
	run.ends(t, 0)
}

// processed is how many tasks the log of a manager says it has processed, in one round or
// in several.
func processed(t *testing.T, log string) (all int) {
	t.Helper()
	for _, m := range regexp.MustCompile(`"tasks":(\d+)`).FindAllStringSubmatch(log, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		all += n
	}
	return all
}

func TestStatsWatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.must("submit", "--program", "p")
	run := b.start(ctx, "stats", "--watch")
	run.says(t, run.out, "open 1\n")
	if _, err := worktest.Round(ctx, b.store, worktest.Echo); err != nil {
		t.Fatal(err)
	}
	run.says(t, run.out, "succeeded 1\n")
	cancel()
	run.ends(t, 1)
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	p := manager.Progress{Total: 100, Done: 40, States: map[statemachine.State]int{"running": 60, "succeeded": 40}}
	want := "40/100  running 60  succeeded 40  3.0 tasks/s  20s left"
	if got := progressLine(p, 10, 10*time.Second); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Where there is no terminal a line comes again and again.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	out := &lockedBuffer{}
	d := &display{out: out, every: time.Millisecond, began: time.Now(), stop: make(chan struct{})}
	d.done.Go(d.lines)
	d.update(manager.Progress{Total: 2, Done: 1, Running: []manager.RunningTask{{ID: 7, Progress: manager.RoundProgress{Part: 0.4, Text: "four of ten"}}}})
	wait.Eventually(t, 10*time.Second, func() bool { return strings.Count(out.String(), "1/2") > 1 }, "nothing is said: %s", out)
	d.close()
	wantText(t, out.String(), "task 7", "four of ten")
}

func TestRanges(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"7": {"7"}, "3-9": {"3-9"}, "1,3,5-8": {"1,3", "5-8"}, "1-4": {"3-4,1-2", "2"}, "": {"all"}, "5,12": {"last", "5"},
	} {
		list, all, err := parseSelector(args, func() (int64, error) { return 12, nil })
		var ids []int64
		for _, r := range list {
			for id := r.First; id <= r.Last; id++ {
				ids = append(ids, id)
			}
		}
		if got := ranges(ids); err != nil || got != want || all != (want == "") {
			t.Errorf("%q is %q, %v, want %q", args, got, err, want)
		}
	}
	if list, all, err := parseSelector(nil, nil); list != nil || all || err != nil {
		t.Errorf("nothing is %v, %v, %v", list, all, err)
	}
}
