package verbs

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
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

// looking is a run that follows tasks through a proxy, and has asked for that field of them, as it does while it goes on.
func (b *bench) looking(field string, args ...string) (*started, *redistest.Proxy) {
	b.t.Helper()
	proxy := b.srv.Proxy(b.t)
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		b.t.Fatal(err)
	}
	looked := make(chan struct{})
	look := sync.OnceFunc(func() { close(looked) })
	proxy.HaltBefore(func(words []string) bool {
		if slices.Contains(words, field) {
			look()
		}
		return false
	})
	run := b.start(b.t.Context(), append([]string{"--set", "redis.host=" + host, "--set", "redis.port=" + port}, args...)...)
	wait.Closed(b.t, limit, looked, "%q does not look", args)
	return run, proxy
}

// The namespace is flushed, and ids are given out again, while somebody waits for a task: what is under its id now says
// nothing of it. A command that begins later says what is known of the id.
func TestFlushedTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 2 {
		b.must("submit", "--program", "p")
	}
	one, proxyOfOne := b.looking("outcome", "wait", "1")
	logs, proxyOfLogs := b.looking("created", "logs", "-f", "1")
	all, proxyOfAll := b.looking("outcome", "wait")
	logs.says(t, logs.err, "has not begun")
	proxies := []*redistest.Proxy{proxyOfOne, proxyOfLogs, proxyOfAll}
	for _, p := range proxies {
		p.Hang() // none of them looks in between
	}
	b.must("flush", "--yes")
	b.must("submit", "--program", "another")
	worktest.Drain(t, b.store, worktest.Echo)
	for _, p := range proxies {
		p.Release()
	}
	for _, run := range []*started{one, logs, all} {
		run.ends(t, 1)
		if run == all { // it may have asked for one of the two before
			wantText(t, run.err.String(), "it was flushed, or lost by Redis")
		} else {
			wantText(t, run.err.String(), "task 1: it was flushed, or lost by Redis; the id means another task now")
		}
		if out := run.out.String(); out != "" {
			t.Errorf("it tells of the other task: %q", out)
		}
	}
	for _, verb := range []string{"show", "logs -f", "wait", "why"} {
		if r := b.run(append(fields(verb), "2")...); r.code != 2 ||
			!strings.Contains(r.err, "task 2: no such task; the namespace was flushed, which begins the ids at 1 again, and the newest is 1") {
			t.Errorf("%s: %+v", verb, r)
		}
	}
	b.srv.Do(t, "DEL", b.ns+":task:1")
	if r := b.run("show", "1"); r.code != 2 || !strings.Contains(r.err, "task 1: no such task; its id was given out, but there is no record of it") {
		t.Errorf("a record that was deleted: %+v", r)
	}
}

// A plan was begun and never made ready: its tasks do not run, and a command that waits for them says so.
func TestHalfBuiltPlan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	plan, err := b.store.NewPlan(t.Context(), task.PlanSpec{RequestKey: "plan", Name: "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	spec := storetest.Spec()
	if _, err := b.store.Open(t.Context(), tasks.OpenRequest{Key: "k", Specs: []task.Definition{spec}, Plan: plan}); err != nil {
		t.Fatal(err)
	}
	if f := b.findings(1)["plans"]; f["severity"] != "ok" {
		t.Errorf("a plan that is being built: %v", f)
	}
	b.srv.Do(t, "HSET", b.ns+":plan:1", "created", "1000")
	f := b.findings(1)["plans"]
	wantText(t, fmt.Sprint(f), "warn", "plan 1 (nightly) was begun ", "its 1 tasks wait", "--key", "tdf-manager plan cancel 1")
	run := b.start(t.Context(), "wait")
	run.says(t, run.err, "waiting for tasks of plan 1, which was not made to its end")
	wantText(t, run.err.String(), "--key", "tdf-manager plan cancel 1")
	longEnough(t, func(timeout string) bool {
		object := b.value(4, "wait", "--timeout", timeout).(map[string]any)
		return fmt.Sprint(object["plans_not_ready"]) == "[1]"
	})
	b.must("plan", "cancel", "1")
	storetest.AdvancePlans(t, b.store, 100, true)
	run.ends(t, 1)
	if n := strings.Count(run.err.String(), "plan 1"); n != 1 {
		t.Errorf("it says %d times: %s", n, run.err)
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

// A signal that comes when the wait is over changes nothing.
func TestSignalAfterTheWait(t *testing.T) {
	t.Parallel()
	b := played(t)
	m := manager.New(b.site(), "tdf-manager", manager.Options{})
	ctx, send := signalled(syscall.SIGINT)
	send()
	var out strings.Builder
	s := &session{cmd: &cobra.Command{Use: "wait"}, out: cli.NewOutput(&out), manager: m}
	reached, err := answer.WaitedFor(ctx, m, manager.Progress{Total: 4, Done: 4, Unsuccessful: []int64{2}}, false)
	err = finishWait(s, reached, err)
	if cli.ExitCode(err) != cli.ExitTaskFailed {
		t.Errorf("ended with %v", err)
	}
	wantText(t, out.String(), "4 of 4 tasks have ended", "task 2 failed")
}

// That of a plan is like it.
func TestSignalAfterThePlan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.planCrew()
	b.run("plan", "run", "-q", planFile(t, broken))
	m := manager.New(b.site(), "tdf-manager", manager.Options{})
	p, err := m.Plan(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, send := signalled(syscall.SIGINT)
	send()
	var out strings.Builder
	s := &session{cmd: &cobra.Command{Use: "run"}, out: cli.NewOutput(&out), manager: m, store: b.store}
	if err := finishPlan(ctx, s, p); cli.ExitCode(err) != cli.ExitTaskFailed {
		t.Errorf("ended with %v", err)
	}
	wantText(t, out.String(), "plan 1 (broken) failed", "task 2 failed")
}

// People whose programs chat on stderr are told why these failed, and what accepts that.
func TestFailedByStderr(t *testing.T) {
	t.Parallel()
	b := played(t)
	if r := b.run("wait", "2"); r.code != 1 || strings.Contains(r.out, "--fail-on") {
		t.Errorf("a round without an exit status: %+v", r)
	}
	b.srv.Do(t, "HSET", b.ns+":task:2", "0:exit_code", "0")
	r := b.run("wait", "2")
	wantText(t, r.out, "(exit status 0, but text on stderr, which --fail-on exit accepts)")
	first := b.value(1, "wait", "2").(map[string]any)["first_unsuccessful"].([]any)[0].(map[string]any)
	if first["on_stderr"] != true {
		t.Errorf("JSON: %v", first)
	}
	b.srv.Do(t, "HSET", b.ns+":task:2", "fail_on", "exit")
	if r := b.run("wait", "2"); strings.Contains(r.out, "--fail-on") {
		t.Errorf("stderr is no failure of this task: %+v", r)
	}
	b.srv.Do(t, "HDEL", b.ns+":task:2", "fail_on")
	wantText(t, b.must("show", "2"), "archived (failed): exit status 0, but text on stderr, which --fail-on exit accepts\n")
	wantText(t, b.must("why", "2"), "but wrote to stderr, which failed it", "-> submit it again with --fail-on exit")
}

// run archives what ends, in good order until a signal, and not beside a
// project's own manager.
func TestRun(t *testing.T) {
	t.Parallel()
	b := played(t, "--archive", "manager")
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
	own := fleet.ManagerRecord{Instance: "i", Name: "adder"}
	if err := b.store.RegisterManager(t.Context(), own); err != nil {
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
	run.says(t, run.out, "archived 1  (ended: succeeded 1)\n")
	cancel()
	run.ends(t, 1)
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	p := manager.Progress{Total: 100, Done: 40, States: map[statemachine.State]int{"running": 60, "succeeded": 40}}
	want := "40/100  running 60  succeeded 40  3.0 tasks/s  20s left"
	if got := progressLine(&p, 10, 10*time.Second, false); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	wantText(t, progressLine(&p, 10, 10*time.Second, true), "40% |", "(40/100)  running 60", "20s left")
}

// Where there is no terminal a line comes again and again.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	out := &daemontest.Output{}
	progress := &waitProgress{began: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	d := &display{of: progress, out: out, pause: time.Millisecond, stop: cancel}
	d.done.Go(func() { d.run(ctx) })
	progress.update(manager.Progress{Total: 2, Done: 1, Running: []manager.RunningTask{{ID: 7, Progress: task.Progress{Part: new(0.4), Text: "four of ten"}}}})
	wait.Eventually(t, 10*time.Second, func() bool { return strings.Count(out.String(), "1/2") > 1 }, "nothing is said: %s", out)
	d.close()
	wantText(t, out.String(), "task 7", "four of ten")
}

// A record without a state is damaged: logs -f says so, instead of asking again and again.
func TestFollowOfADamagedTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("submit", "--program", "p")
	b.srv.Do(t, "DEL", b.ns+":task:1")
	b.srv.Do(t, "HSET", b.ns+":task:1", "program", "p")
	logs := b.start(t.Context(), "logs", "-f", "1")
	logs.ends(t, 1)
	wantText(t, logs.err.String(), "task 1 is damaged")
}
