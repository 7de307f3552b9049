package acceptance

import (
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// order runs tdf-manager worker with a verb for workers.
func (w *world) order(t *testing.T, words ...string) {
	t.Helper()
	args := append([]string{program(t, "tdf-manager"), "--config", w.cfg, "worker"}, words...)
	if out, stderr, code := run(t, w.dir, args...); code != 0 {
		t.Fatalf("%v ended with %d: %s%s", words, code, out, stderr)
	}
}

func (w *world) becomes(t *testing.T, name, state string) {
	t.Helper()
	wait.Eventually(t, patience, func() bool { return string(w.info(t, name).State) == state },
		"worker %s is not %s but %s", name, state, late(func() string { return string(w.info(t, name).State) }))
}

// Orders from outside: a worker that is drained finishes what it runs and claims
// nothing, also after a restart, until it is undrained; one that is stopped ends
// in good order.
func TestOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	spec, l := w.beating(t)
	first := w.open(t, spec)[0]
	worker := w.worker(t, "w", "slots=2", "drain_timeout=1")
	l.begun(t, 0, 1)
	w.order(t, "drain", "w")
	w.becomes(t, "w", "draining")
	second := w.open(t, spec)[0]
	l.release(t, first)
	checkFields(t, w.archived(t, first, sm.Succeeded), map[string]string{"round": "0", "0:worker": "w"})
	w.becomes(t, "w", "drained")
	w.leave(t, worker)
	worker = w.worker(t, "w", "slots=2", "drain_timeout=1")
	w.becomes(t, "w", "drained")
	w.passed(t, w.redisNow(t), 2*sm.Second)
	if state := w.state(t, second); state != sm.Open {
		t.Errorf("a task opened while the only worker is drained is %s", state)
	}
	at := w.redisNow(t)
	w.order(t, "undrain", "w")
	within(t, "from undrain to the next claim", at, storetest.Stamps(w.await(t, second, sm.Running), 0)["running"], 2*sm.Second)
	w.order(t, "stop", "w")
	worker.Finish(t)
	w.becomes(t, "w", "stopped")
	checkFields(t, w.await(t, second, sm.Open), map[string]string{"releases": "1", "round": "1", "losses": "-", "0:executed": "-"})
	w.worker(t, "w") // a stop is for a process, not for a name
	l.release(t)
	w.archived(t, second, sm.Succeeded)
	l.noOverlap(t)
	w.sound(t)
}
