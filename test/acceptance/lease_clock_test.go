package acceptance

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/redistest"
	"github.com/tdf-go/tdf/internal/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
)

// D1: the clocks of workers, servers and managers do not matter. They cannot be
// set here, so that of Redis is: all of them are an hour late, or early, by it.
// Times of tasks, timeouts, leases and losses are the same.
func TestClocks(t *testing.T) {
	t.Parallel()
	for name, shift := range map[string]string{"an hour late": "3600", "an hour early": "-3600"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := filepath.Join(t.TempDir(), "clockshift.so")
			cc := exec.Command("cc", "-shared", "-fPIC", "-o", library, filepath.Join("testdata", "clockshift.c"))
			if out, err := cc.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", cc.Args, err, out)
			}
			w := worldOn(t, storetest.On(t, redistest.Start(t, redistest.WithEnv("LD_PRELOAD="+library, "CLOCK_SHIFT="+shift))))
			if off := time.Until(at(w.redisNow(t))).Abs(); off < 59*time.Minute || off > 61*time.Minute {
				t.Fatalf("the clock of Redis is off by %v, want an hour", off)
			}
			w.leasing(t)
			t.Run("times of tasks", w.timesOfTasks)
			t.Run("leases", w.leasesHold)
		})
	}
}

// timesOfTasks checks what is due when, by the stamps of Redis.
func (w *world) timesOfTasks(t *testing.T) {
	later, slow, last := w.script(t, "p", "true"), w.script(t, "slow", "sleep 60"), w.script(t, "slow", "sleep 60")
	now := w.redisNow(t)
	later.StartAfter, slow.Timeout, last.EndBefore = at(now.Add(2*sm.Second)), time.Second, at(now.Add(3*sm.Second))
	ids := w.open(t, later, slow, last)
	worker := w.worker(t, "w", "slots=3")
	task := w.archived(t, ids[0], sm.Succeeded)
	if start := task.Round(0).Stamps["running"]; start < now.Add(2*sm.Second) {
		t.Errorf("started %s s after now, want start_after = 2", start.Sub(now).Text())
	} else {
		within(t, "from start_after to the start", now.Add(2*sm.Second), start, 2*sm.Second)
	}
	stamps := w.archived(t, ids[1], sm.TimedOut).Round(0).Stamps
	if took := stamps["timed_out"].Sub(stamps["running"]); took < sm.Second {
		t.Errorf("timed out after %s s, want timeout = 1", took.Text())
	}
	within(t, "a round with timeout = 1", stamps["running"], stamps["timed_out"], 3*sm.Second)
	ended := w.archived(t, ids[2], sm.Expired).Round(0).Stamps["expired"]
	if ended < now.Add(3*sm.Second) {
		t.Errorf("expired %s s after now, want end_before = 3", ended.Sub(now).Text())
	}
	within(t, "from end_before to the end", now.Add(3*sm.Second), ended, 2*sm.Second)
	w.leave(t, worker)
}

// leasesHold checks that a living worker is not lost and a dead one is, in time.
func (w *world) leasesHold(t *testing.T) {
	spec, l := w.beating(t)
	id := w.open(t, spec)[0]
	dies := w.worker(t, "dies")
	l.begun(t, 0, 1)
	w.passed(t, w.redisNow(t), 2*shortLease)
	checkFields(t, w.await(t, id, sm.Running), map[string]string{"losses": "-", "round": "0"})
	w.worker(t, "other")
	at := w.kill(t, dies)
	w.allBack(t, []int64{id}, at, shortLease+2*sm.Second)
	w.finishElsewhere(t, []int64{id}, l)
}
