package acceptance

import (
	"cmp"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// D13: an open or blocked task is cancelled at once and never runs; of one that has
// ended a cancel is refused, and nothing of it changes.
func TestCancelWaitingAndEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	spec, l := w.waiting(t, "l", "")
	l.release(t)
	ids := w.open(t, spec, spec)
	held := w.submitted(t, w.script(t, "p", "true"), "--hold")
	w.manage(t, 0, "cancel", id2text(ids[0]), id2text(held), "--reason", "wrong input")
	for _, id := range []int64{ids[0], held} {
		task := w.archived(t, id, sm.Cancelled)
		checkFields(t, task, map[string]string{"cancel_reason": "wrong input", "0:running": "-", "0:cancelled": "*"})
		contains(t, "the log of the task", task.Fields["log"], "cancelled by", ": wrong input")
		if n := w.status(t, id); n != -5 {
			t.Errorf("status of task %d is %d", id, n)
		}
	}
	w.node(t, "n1")
	w.archived(t, ids[1], sm.Succeeded)
	if n := l.count(t, 0, "start"); n != 1 {
		t.Errorf("%d tasks ran", n)
	}
	for _, id := range []int64{ids[0], ids[1]} {
		before := w.hash(t, id)
		out, _ := w.manage(t, cli.ExitTaskFailed, "cancel", id2text(id), "--reason", "too late")
		contains(t, "the answer", out, "finished already")
		if after := w.hash(t, id); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("task %d has changed:\n%v\n%v", id, before, after)
		}
	}
	w.sound(t)
}

// tree is a program with children in every form, of which one ignores SIGTERM; it
// tells in $1 that it was told to stop.
const tree = `trap 'echo told >"$1.told"' TERM
(trap '' TERM; sleep 600) &
setsid sh -c 'trap "" TERM; sleep 600' &
echo partial; echo so far >&2; : >"$1.begun"
while :; do sleep 0.1; done`

// D14: the worker of a running task is told of a cancel within a second, ends all of
// its processes, keeps what they wrote, and the slot is free again.
func TestCancelRunningTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	w.queue(t, "q", "threads=1")
	spec := w.script(t, "tree", tree)
	spec.Input, spec.Queue, spec.Retry.Limit, spec.MaxTimeouts = w.dir+"/sign", "q", task.AtMost(5), task.AtMost(5)
	next := w.script(t, "next", "echo next")
	next.Queue = "q"
	ids := w.open(t, spec, next)
	w.node(t, "n1", "slots=1")
	made(t, spec.Input+".begun")
	out := w.text(t, "cancel", id2text(ids[0]), "--reason", "enough")
	contains(t, "the answer", out, "1")
	task := w.archived(t, ids[0], sm.Terminated)
	if left := w.left("tree"); len(left) != 0 {
		t.Errorf("processes %v are left of the task", left)
	}
	checkFields(t, task, map[string]string{
		"round": "0", "fails": "0", "timeouts": "0", "cancel_reason": "enough", "0:output": "partial\n", "0:terminated": "*", "1:open": "-",
	})
	contains(t, "what it wrote to stderr", task.Fields["0:error"], "so far\n")
	contains(t, "the log of the task", task.Fields["log"], "stop asked for by", ": enough", "running -> terminated")
	asked, err := sm.ParseTime(task.Fields["cancel_requested"])
	if err != nil {
		t.Fatal(err)
	}
	within(t, "from the cancel to its end, kill_grace of 0.2 s included", asked, storetest.Stamps(task, 0)["terminated"], 12*sm.Second/10)
	if text, err := os.ReadFile(spec.Input + ".told"); err != nil || string(text) != "told\n" {
		t.Errorf("the program was not told to stop: %q, %v", text, err)
	}
	if n := w.status(t, ids[0]); n != -3 {
		t.Errorf("status is %d", n)
	}
	freed := w.archived(t, ids[1], sm.Succeeded)
	within(t, "from the end to the next claim", storetest.Stamps(task, 0)["terminated"], storetest.Stamps(freed, 0)["running"], sm.Second)
	w.sound(t)
}

// D12: a blocked task is not claimed; released, it is. The reason is in its log.
func TestHoldAndRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	p := w.script(t, "p", "true")
	ids := w.open(t, times(3, p)...)
	w.manage(t, 0, "hold", id2text(ids[0])+"-"+id2text(ids[1]), "--reason", "input is late")
	born := w.submitted(t, p, "--hold=no licence yet")
	w.node(t, "n1", "slots=2")
	w.archived(t, ids[2], sm.Succeeded)
	w.archived(t, w.open(t, p)[0], sm.Succeeded)
	for _, id := range []int64{ids[0], ids[1], born} {
		checkFields(t, w.Task(t, id), map[string]string{"state": "blocked", "hold": "*", "0:running": "-"})
		if n := w.status(t, id); n != -4 {
			t.Errorf("status of task %d is %d", id, n)
		}
	}
	w.manage(t, 0, "release", id2text(ids[1]), id2text(born))
	contains(t, "log", w.archived(t, ids[1], sm.Succeeded).Fields["log"], "held by", ": input is late", "open -> blocked", "released by", "blocked -> open")
	w.archived(t, born, sm.Succeeded)
	checkFields(t, w.Task(t, ids[0]), map[string]string{"state": "blocked", "hold": "input is late"})
	w.sound(t)
}

// D07, the store side: the numbers of Disbatch on the way of a task, and those of
// each end.
func TestStatusNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	spec, l := w.waiting(t, "l", "")
	walk := w.open(t, spec)[0]
	is := func(id int64, want int) {
		t.Helper()
		if got := w.status(t, id); got != want {
			t.Errorf("status of task %d, which is %s, is %d, want %d", id, w.state(t, id), got, want)
		}
	}
	is(walk, -2)
	w.manage(t, 0, "hold", id2text(walk))
	is(walk, -4)
	w.manage(t, 0, "release", id2text(walk))
	is(walk, -2)
	w.node(t, "n1", "slots=2")
	l.begun(t, 0, 1)
	is(walk, 0)
	l.release(t)
	w.await(t, walk, sm.Succeeded)
	is(walk, 1)
	fails, hangs, late := w.script(t, "fails", "echo no >&2"), w.script(t, "hangs", "sleep 600"), w.script(t, "late", "true")
	hangs.Timeout, late.EndBefore = 200*time.Millisecond, at(w.redisNow(t).Add(-sm.Second))
	for state, spec := range map[sm.State]task.Spec{sm.Failed: fails, sm.TimedOut: hangs, sm.Expired: late} {
		id := w.open(t, spec)[0]
		w.await(t, id, state)
		is(id, map[sm.State]int{sm.Failed: 2, sm.TimedOut: 3, sm.Expired: 4}[state])
	}
	w.archiver(t)
	w.archived(t, walk, sm.Succeeded)
	is(walk, 1)
}

// D15: the time a task was created never changes; with every change of it the
// revision grows, and so does its log.
func TestCreatedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.submitted(t, w.script(t, "p", "[ $TDF_ROUND = 1 ]"), "--max-fails", "1", "--archive", "manager")
	created := w.hash(t, id)["0:open"]
	before := w.hash(t, id)
	changed := func(what string) {
		t.Helper()
		after := w.hash(t, id)
		if now := cmp.Or(after["created"], after["0:open"]); now != created || created == "" {
			t.Errorf("%s: created at %s, was %s", what, now, created)
		}
		if number(t, after["rev"]) <= number(t, before["rev"]) || len(after["log"]) <= len(before["log"]) {
			t.Errorf("%s: revision %q after %q, log of %d bytes after %d", what, after["rev"], before["rev"], len(after["log"]), len(before["log"]))
		}
		before = after
	}
	w.manage(t, 0, "hold", id2text(id))
	changed("hold")
	w.manage(t, 0, "release", id2text(id))
	changed("release")
	n1 := w.node(t, "n1")
	w.await(t, id, sm.Executed)
	changed("a round")
	w.leave(t, n1)
	w.server(t)
	w.reopened(t, id)
	changed("a failure")
	w.node(t, "n2")
	w.await(t, id, sm.Succeeded)
	changed("a round that succeeds")
	w.archiver(t)
	w.archived(t, id, sm.Succeeded)
	changed("archiving")
}

// number reads a whole number, 0 if there is none.
func number(t *testing.T, text string) int {
	t.Helper()
	n := 0
	if text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}
