package acceptance

import (
	"net"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// reaching are the arguments of a worker that reaches Redis at another address.
func (w *world) reaching(t *testing.T, name, addr string, set ...string) []string {
	t.Helper()
	return append(w.workerArgs(name, set...), elsewhere(t, addr)...)
}

// elsewhere are the arguments of a program that reaches Redis at another address.
func elsewhere(t *testing.T, addr string) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--set", "redis.host=" + host, "--set", "redis.port=" + port}
}

// C1: a worker is cut off for three leases, packets vanishing silently. It kills
// its programs before their tasks run elsewhere, whatever on_redis_loss says
// because it cannot prove anything, and works again once the way is free.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"stop", "finish"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			proxy := w.Server.Proxy(t)
			cut := w.launch(t, "cut", "tdf-worker", w.reaching(t, "cut", proxy.Addr(), "slots=4", "on_redis_loss="+mode)...)
			w.cutOff(t, cut, proxy.Hang, proxy.Release)
		})
	}
}

// cutOff cuts the worker cut off from Redis while it has four tasks.
func (w *world) cutOff(t *testing.T, cut *daemon, hang, release func()) {
	t.Helper()
	w.leasing(t)
	spec, l := w.beating(t)
	ids := w.open(t, times(4, spec)...)
	l.begun(t, 0, 4)
	before := w.info(t, "cut").Incarnation
	other := w.worker(t, "other", "slots=4")
	at := w.redisNow(t)
	hang()
	w.allBack(t, ids, at, shortLease+2*sm.Second)
	w.noneLeft(t, "cut")
	cut.Says(t, "could not renew the lease in time")
	l.begun(t, 1, 4)
	w.passed(t, at, 3*shortLease)
	healed := w.redisNow(t)
	release()
	wait.Eventually(t, patience, func() bool { return w.info(t, "cut").Incarnation > before },
		"the worker that was cut off does not register again")
	within(t, "from the healing to the new registration", healed, task.Stamp(w.info(t, "cut").Started), 10*sm.Second)
	l.release(t)
	for _, id := range ids {
		w.lostOnce(t, id, "cut", "other")
	}
	l.noOverlap(t)
	w.leave(t, other)
	again := w.archived(t, w.open(t, w.script(t, "p", "true"))[0], sm.Succeeded)
	checkFields(t, again, map[string]string{"0:worker": "cut", "round": "0"})
	w.sound(t)
}

// away is longer than a lease.
const away = 3 * time.Duration(shortLease) * time.Microsecond

// Redis itself is away for three leases and on_redis_loss=finish: programs go on,
// results that are there meanwhile are delivered once, and nothing is lost.
func TestRedisAwayFinish(t *testing.T) {
	t.Parallel()
	w := worldOn(t, appendOnly(t))
	w.leasing(t)
	spec, l := w.beating(t)
	ids := w.open(t, times(4, spec)...)
	worker := w.worker(t, "w", "slots=4", "on_redis_loss=finish")
	l.begun(t, 0, 4)
	w.Server.Kill(t)
	alive := func() int { return l.count(t, 0, "beat") }
	wait.Never(t, away, worker.Ended, "the worker has ended while Redis was away")
	l.release(t, ids[:2]...)
	wait.Eventually(t, patience, func() bool { return l.count(t, 0, "end") == 2 }, "two programs do not end without Redis")
	worker.Says(t, "keeping a result on disk while redis is away")
	seen := alive()
	wait.Eventually(t, patience, func() bool { return alive() > seen }, "the other two programs do not go on")
	w.Server.Restart(t)
	l.release(t)
	for _, id := range ids {
		task := w.archived(t, id, sm.Succeeded)
		checkFields(t, task, map[string]string{"round": "0", "losses": "-", "releases": "-", "0:output": "round 0 by w\n"})
		if n := countLines(task.Fields["log"], "-> executed"); n != 1 {
			t.Errorf("task %d was reported %d times:\n%s", id, n, task.Fields["log"])
		}
	}
	if n := l.count(t, 0, "start") + l.count(t, 1, "start"); n != 4 {
		t.Errorf("%d programs were started, want 4", n)
	}
	w.sound(t)
}

// Redis itself is away for three leases and on_redis_loss=stop: programs are
// killed before the lease ends, and their tasks handed back, not lost.
func TestRedisAwayStop(t *testing.T) {
	t.Parallel()
	w := worldOn(t, appendOnly(t))
	w.leasing(t)
	spec, l := w.beating(t)
	ids := w.open(t, times(4, spec)...)
	worker := w.worker(t, "w", "slots=4", "on_redis_loss=stop")
	l.begun(t, 0, 4)
	w.Server.Kill(t)
	since := time.Now()
	wait.Eventually(t, patience, func() bool { return len(w.processes("w")) == 0 }, "the programs are not killed")
	wait.Within(t, "from the loss of Redis to the end of the programs, within the lease,", since, time.Now(), away/3+time.Second)
	wait.Never(t, away-time.Since(since), worker.Ended, "the worker has ended while Redis was away")
	w.Server.Restart(t)
	l.begun(t, 1, 4)
	l.release(t)
	for _, id := range ids {
		checkFields(t, w.archived(t, id, sm.Succeeded), map[string]string{
			"round": "1", "releases": "1", "losses": "-", "fails": "0", "0:executed": "-", "1:output": "round 1 by w\n",
		})
	}
	l.noOverlap(t)
	w.sound(t)
}
