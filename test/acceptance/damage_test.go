package acceptance

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A53, B24: tasks are deleted and half-written by hand, in every state, while
// all programs run: they are logged and made dead letters, and the others go on.
func TestDamagedTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server, _, _ := w.all(t)
	later := w.script(t, "p", `while [ -n "$1" ] && [ ! -e "$1" ]; do sleep 0.05; done`)
	running := later
	later.StartAfter = at(w.redisNow(t).Add(sm.Second * 3600))
	running.Input = w.dir + "/go"
	ids := w.open(t, later, later, later, running)
	w.await(t, ids[3], sm.Running)
	ended := w.plantEnded(t)
	raw, ctx := w.Raw, t.Context()
	raw.Del(ctx, w.Key("task:1"))
	raw.HSet(ctx, w.Key("task:2"), "round", "two")
	raw.HDel(ctx, w.Key("task:3"), "state", "program")
	raw.Del(ctx, w.Key("task:4"))
	w.file(t, "go", "", 0o600)
	for _, id := range append(ids, ended...) {
		wait.Eventually(t, patience, func() bool { return len(w.Sets(t, id)) == 0 }, "task %d is no dead letter", id)
		server.Says(t, `"task":`+id2text(id)) // after it has done so
	}
	server.Says(t, "dead letter")
	w.archived(t, w.open(t, w.script(t, "q", "true"))[0], sm.Succeeded)
	for _, d := range w.daemons {
		if d.Ended() {
			t.Errorf("%v has ended", d.Args)
		}
	}
	out, _, code := run(t, w.dir, program(t, "tdf-manager"), "--config", w.cfg, "verify")
	if code != 1 || !strings.Contains(out, "set_aside") {
		t.Errorf("verify ended with %d: %s", code, out)
	}
}

// plantEnded lists tasks without a record as executed and as succeeded.
func (w *world) plantEnded(t *testing.T) []int64 {
	t.Helper()
	first, err := w.Raw.IncrBy(t.Context(), w.Key("task_id"), 2).Result()
	if err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{"executed", "succeeded"} {
		if err := w.Raw.Do(t.Context(), "ZADD", w.Key(state), 1, first-1+int64(i)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return []int64{first - 1, first}
}

// A49: an idle worker says so, once, and waits; the configured wait is only an
// upper bound. A47 has its test with a timer of its own; here the lines come.
func TestIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sleep_after_no_process_claimed=0.05")
	server := w.server(t)
	worker := w.worker(t, "w")
	worker.Says(t, `"worker":"w"`)
	worker.Says(t, "no open task to claim")
	server.Says(t, `"interval":1,"tasks":0`)
	wait.Never(t, 300*time.Millisecond, func() bool {
		return strings.Count(worker.Log.String(), "no open task to claim") > 1
	}, "idling is said again and again")
	w.await(t, w.open(t, w.script(t, "p", "true"))[0], sm.Succeeded)
	wait.Eventually(t, patience, func() bool {
		return strings.Count(worker.Log.String(), "no open task to claim") == 2
	}, "the next idle time is not said")
}

// A25, A26: all overdue tasks expire in one round of the server, however many
// others wait in front of them.
func TestManyOverdue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	endless := task.Spec{Program: "p", Source: "rsync:run.sh", StartAfter: at(w.redisNow(t).Add(3600 * sm.Second))}
	overdue := task.Spec{Program: "p", Source: "rsync:run.sh", EndBefore: at(w.redisNow(t).Add(-sm.Second))}
	specs := make([]task.Spec, 0, 3000)
	for i := range 3000 {
		if i < 2000 {
			specs = append(specs, endless)
		} else {
			specs = append(specs, overdue)
		}
	}
	w.open(t, specs...)
	server := w.server(t)
	server.Says(t, `"interval":0,"tasks":1000,`)
	counts, err := w.Store.Count(t.Context())
	if err != nil || counts[sm.Expired] != 1000 || counts[sm.Open] != 2000 {
		t.Errorf("after the first round: %v, %v", counts, err)
	}
}
