package verbs

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

// hosts is a bench with four workers: one at work, one that claims nothing, one
// with a stuck slot, and one that has stopped.
func hosts(t *testing.T) (*bench, map[string]*fake) {
	t.Helper()
	b := newBench(t)
	all := map[string]*fake{}
	for _, name := range []string{"worker-A", "worker-B", "worker-C", "worker-D"} {
		all[name] = b.worker(name)
	}
	b.must("submit", "--program", "p")
	all["worker-A"].claim()
	all["worker-A"].beat(task.WorkerReady, 1, 0, "")
	all["worker-B"].beat(task.WorkerReady, 0, 0, "disk\x1b full")
	all["worker-C"].beat(task.WorkerReady, 2, 1, "")
	all["worker-D"].leave()
	return b, all
}

// isMoment reports whether a value of JSON is a moment of this year, in UTC.
func isMoment(value any) bool {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && strings.HasSuffix(text, "Z") && time.Since(at).Abs() < 365*24*time.Hour
}

func TestWorkerLs(t *testing.T) {
	t.Parallel()
	b, _ := hosts(t)
	r := b.run("worker", "ls")
	wantText(t, r.out, "NAME", "HEARTBEAT", "worker-A", "1/8", "node-1", "pidns", "v1.2.3", `disk\x1b full`, "2/8    1", " ago")
	wantText(t, r.err, "1 stopped workers are not shown; see them with --all")
	if strings.Contains(r.out, "worker-D") || r.code != 0 {
		t.Errorf("%+v", r)
	}
	wantText(t, b.must("worker", "ls", "--all"), "worker-D", "stopped")
	list := b.value(0, "worker", "ls").([]any)
	one := list[2].(map[string]any)
	if len(list) != 3 || one["name"] != "worker-C" || one["busy"] != 2.0 || one["stuck"] != 1.0 || one["slots"] != 8.0 ||
		one["state"] != "ready" || one["order"] != "" || one["ended"] != nil || !isMoment(one["heartbeat"]) {
		t.Errorf("JSON: %v", one)
	}
	if len(b.value(0, "worker", "list", "--all").([]any)) != 4 {
		t.Error("--all --json has not all of them")
	}
	if list := newBench(t).value(0, "worker", "ls").([]any); len(list) != 0 {
		t.Errorf("nobody: %v, want []", list)
	}
}

func TestWorkerShow(t *testing.T) {
	t.Parallel()
	b, _ := hosts(t)
	wantText(t, b.must("worker", "show", "worker-A"), "worker       worker-A", "id           1 (incarnation 1)", "1 of 8 busy, 0 stuck",
		"host         host.example", "pid          42", "labels       gpu=1, disk=ssd", "env          python", "resources    gpu=2, mem=64", "classes      render=2.1, index",
		"maxthreads   unlimited (on its node)", "tasks        1\n", "CLASS", "default  8        7     1", " ago)")
	object := b.value(0, "worker", "show", "worker-A").(map[string]any)
	queue := object["queues"].([]any)[0].(map[string]any)
	if fmt.Sprint(object["tasks"]) != "[1]" || fmt.Sprint(object["labels"]) != "[gpu=1 disk=ssd]" || object["pid"] != 42.0 ||
		object["heartbeat_age"].(float64) > 60 || queue["processing"] != 1.0 || queue["threads"] != 8.0 {
		t.Errorf("JSON: %v", object)
	}
	if fmt.Sprint(object["env"], object["resources"], object["classes"], object["maxthreads"]) != "pythonmap[gpu:2 mem:64] [render=2.1 index] <nil>" {
		t.Errorf("JSON: %v", object)
	}
	wantText(t, b.must("worker", "show", "worker-D"), "stopped", "ended ", "tasks        -\n")
}

func TestUnknownWorker(t *testing.T) {
	t.Parallel()
	b, all := hosts(t)
	for _, args := range []string{"show worker_A", "drain worker-B worker_A", "undrain worker_A", "stop worker_A"} {
		r := b.run(append([]string{"worker"}, strings.Fields(args)...)...)
		if r.code != 2 || !strings.Contains(r.err, `no such worker: "worker_A"; did you mean "worker-A"?`) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if order := all["worker-B"].beat(task.WorkerReady, 0, 0, ""); order != task.NoCommand {
		t.Errorf("one unknown name, and another worker is ordered %q", order)
	}
	for args, say := range map[string]string{
		"show nobody": "worker ls --all", "drain": "expecting at least 1 argument (0 given)", "drain all worker-A": "all stands alone", "": "command is missing",
		"fire worker-A": "unknown command", "drain worker-A --wait=soon": "--wait", "drain worker-A --wait --dry-run": "none of the others",
	} {
		r := b.run(append([]string{"worker"}, strings.Fields(args)...)...)
		if r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%q: %+v, want 2 and %q", args, r, say)
		}
	}
}

// fullDisk is where nothing can be written to.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Where the output is lost, a wait ends: nobody hears of what it waits for.
func TestOrderIntoAFullDisk(t *testing.T) {
	t.Parallel()
	b, _ := hosts(t)
	var errs bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	code := executeTo(ctx, "", fullDisk{}, &errs, "--config", b.file, "worker", "drain", "worker-A", "--wait")
	if code != 1 || ctx.Err() != nil || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("code %d, %v, and said\n%s", code, ctx.Err(), errs.String())
	}
}

// A lost output does not hide why the verb has stopped, nor its exit code.
func TestErrorBesideALostOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("queue", "add", "a")
	b.must("queue", "add", "b")
	b.must("submit", "--program", "p", "--source", "http://h/p.tgz", "--queue", "b", "x")
	var errs bytes.Buffer
	code := executeTo(t.Context(), "", fullDisk{}, &errs, "--config", b.file, "queue", "rm", "a", "b")
	if code != cli.ExitTaskFailed || !strings.Contains(errs.String(), "no space left") || !strings.Contains(errs.String(), "in use") {
		t.Errorf("code %d, and said\n%s", code, errs.String())
	}
}

func TestDrainAndUndrain(t *testing.T) {
	t.Parallel()
	b, all := hosts(t)
	out := b.must("worker", "drain", "worker-A", "worker-B", "--dry-run")
	if want := "worker-A: would drain; it is ready, 1 of 8 slots busy\nworker-B: would drain; it is ready, 0 of 8 slots busy\n"; out != want {
		t.Errorf("dry run: %q, want %q", out, want)
	}
	if order := all["worker-A"].beat(task.WorkerReady, 1, 0, ""); order != task.NoCommand {
		t.Errorf("a dry run orders %q", order)
	}
	out = b.must("worker", "drain", "worker-A", "worker-A", "worker-D")
	if want := "worker-A: drain ordered; it was ready, 1 of 8 slots busy\nworker-D: drain ordered; it was stopped\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	if order := all["worker-A"].beat(task.WorkerReady, 1, 0, ""); order != task.CommandDrain {
		t.Errorf("ordered %q", order)
	}
	wantText(t, b.must("worker", "ls", "--all"), "ready (drain ordered)", "stopped (drain ordered)")
	all["worker-A"].beat(task.WorkerDraining, 1, 0, "drained by an operator")
	wantText(t, b.must("worker", "ls"), "draining  1/8")
	wantText(t, b.must("worker", "drain", "worker-A"), "worker-A: drain was ordered before\n")
	wantText(t, b.must("worker", "undrain", "worker-B"), "worker-B: it has no order to drain\n")
	out = b.must("worker", "undrain", "all")
	if want := "worker-A: undrain ordered; it was draining, 1 of 8 slots busy\nworker-D: undrain ordered; it was stopped\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	if order := all["worker-A"].beat(task.WorkerReady, 1, 0, ""); order != task.NoCommand {
		t.Errorf("ordered %q", order)
	}
	list := b.value(0, "worker", "drain", "all").([]any)
	one := list[0].(map[string]any)
	if len(list) != 3 || one["name"] != "worker-A" || one["was"] != "ready" || one["ordered"] != true || one["order"] != "drain" {
		t.Errorf("JSON: %v", list)
	}
	wantText(t, newBench(t).must("worker", "drain", "all"), "there is no worker to drain")
}

func TestStop(t *testing.T) {
	t.Parallel()
	b, all := hosts(t)
	wantText(t, b.must("worker", "stop", "worker-A", "worker-D"),
		"worker-A: stop ordered; it was ready, 1 of 8 slots busy\n", "worker-D: it is stopped already\n")
	if order := all["worker-A"].beat(task.WorkerReady, 1, 0, ""); order != task.CommandStop {
		t.Errorf("ordered %q", order)
	}
	wantText(t, b.must("worker", "ls"), "ready (stop ordered)")
	wantText(t, b.must("worker", "stop", "worker-A"), "stop was ordered before")
	wantText(t, b.must("worker", "drain", "worker-A"), "it is about to stop\n")
	if r := b.run("worker", "undrain", "worker-A"); r.code != 1 || !strings.Contains(r.out, "cannot be taken back") {
		t.Errorf("undrain: %+v, want 1", r)
	}
}

// The wait ends when all are drained, and not before they have heard of it.
func TestDrainWaits(t *testing.T) {
	t.Parallel()
	b, all := hosts(t)
	a, c := all["worker-A"], all["worker-C"]
	a.beat(task.WorkerDrained, 0, 0, "") // of a drain that was taken back
	run := b.start(t.Context(), "worker", "drain", "worker-A", "worker-C", "--wait")
	run.says(t, run.err, "waiting for worker-A, worker-C")
	a.hears(task.CommandDrain)
	c.beat(task.WorkerDrained, 0, 1, "")
	run.says(t, run.out, "worker-C: drained, except for 1 stuck slots\n")
	run.says(t, run.err, "waiting for worker-A\n")
	a.beat(task.WorkerDrained, 0, 0, "")
	wait.Never(t, 2*orderPoll, func() bool { return len(run.done) > 0 }, "worker-A still holds a task")
	(&hand{t: t, store: b.store, now: a.held.Task.Current.Running}).report(a.held, "output", "", "error", "")
	run.ends(t, 0)
	wantText(t, run.out.String(), "worker-A: drain ordered; it was drained, 0 of 8 slots busy\n", "worker-A: drained\n")
	longEnough(t, func(timeout string) bool {
		r := b.run("worker", "drain", "worker-A", "worker-B", "--wait="+timeout, "--json")
		list := oneValue(t, r.out).([]any)
		first, second := list[0].(map[string]any), list[1].(map[string]any)
		if r.code != 4 || second["done"] != false || second["timed_out"] != true || first["done"] == true && first["is"] != "drained" {
			t.Errorf("%+v", r)
		}
		return first["done"] == true
	})
}

func TestStopWaits(t *testing.T) {
	t.Parallel()
	b, all := hosts(t)
	run := b.start(t.Context(), "worker", "stop", "all", "--wait=1h")
	all["worker-B"].hears(task.CommandStop)
	all["worker-B"].leave()
	run.says(t, run.out, "worker-B: stopped\n")
	all["worker-C"].hears(task.CommandStop)
	all["worker-C"].leave()
	b.worker("worker-C") // somebody starts it again
	run.says(t, run.out, "worker-C: stop")
	b.srv.Do(t, "HSET", b.ns+":worker:worker-A", "state", "lost") // as a server says
	run.ends(t, 1)
	wantText(t, run.out.String(), "worker-A: lost; its tasks went back\n")
}

func TestWaitForWorkersEndsWithASignal(t *testing.T) {
	t.Parallel()
	b, _ := hosts(t)
	ctx, send := signalled(syscall.SIGINT)
	run := b.start(ctx, "worker", "drain", "worker-A", "--wait")
	run.says(t, run.err, "waiting for worker-A")
	send()
	run.ends(t, 130)
}
