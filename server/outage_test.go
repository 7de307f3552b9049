package server

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
)

// durable is a space on a Redis of its own that keeps everything.
func durable(t *testing.T) *storetest.Space {
	t.Helper()
	srv := redistest.Start(t, redistest.WithAppendOnly())
	sp := &storetest.Space{Server: srv, Namespace: redistest.Namespace(t), Where: storetest.Where(srv)}
	sp.Store = sp.Dial(t)
	sp.Raw = redis.NewClient(&redis.Options{Addr: srv.Socket()})
	t.Cleanup(func() { _ = sp.Raw.Close() })
	return sp
}

// alone dials as tdf-server does: without repeating calls.
func alone(t *testing.T, sp *storetest.Space) func(*options) {
	t.Helper()
	return func(o *options) { o.store = sp.Dial(t, conn.WithRetries(-1)) }
}

// Redis is away for two leases, and all heartbeats are stale when it is back:
// no verdict before one lease after that, and who renews in time keeps its tasks.
func TestRedisAwayForTwoLeases(t *testing.T) {
	t.Parallel()
	sp := durable(t)
	s, l := launch(t, sp, leased, alone(t, sp))
	awaitSteady(t, s)
	tick := patient(s)
	ids := openMany(t, sp, 2)
	lives, dead := register(t, sp.Store, "lives", 1), register(t, sp.Store, "dead", 1)
	dead.renew(t)
	lives.renew(t)
	sp.Server.Kill(t)
	wait.Never(t, 2*lease, func() bool { tick(); return strings.Contains(l.String(), "is lost") }, "a verdict without Redis\n%s", l)
	sp.Server.Restart(t)
	back := redisNow(t, sp.Store)
	kept := func() bool {
		tick()
		return sp.Task(t, ids[0]).State == statemachine.Running && sp.Task(t, ids[1]).State == statemachine.Running
	}
	wait.Eventually(t, 5*time.Second, func() bool { return strings.Contains(l.String(), "redis answers again") }, "no contact\n%s", l)
	wait.Never(t, lease/4, func() bool { return !kept() }, "a verdict before one lease of contact\n%s", l)
	wait.Eventually(t, 10*time.Second, func() bool {
		lives.renew(t)
		tick()
		return sp.Task(t, ids[1]).State == statemachine.Open
	}, "the dead worker is never lost\n%s", l)
	if waited := timing.ToStd(opened(t, sp, ids[1], 1).Sub(back)); waited < lease-50*time.Millisecond {
		t.Errorf("a verdict %v after the return of Redis", waited)
	}
	lives.renew(t)
	checkState(t, sp, ids[0], statemachine.Running)
	if n := strings.Count(l.String(), "no verdict on workers for 1s: Redis was away"); n != 1 {
		t.Errorf("said %d times:\n%s", n, l)
	}
}

// Redis restarts so fast that no pass notices: a wait for work does.
func TestRedisRestartsFast(t *testing.T) {
	t.Parallel()
	sp := durable(t)
	s, l := launch(t, sp, leased, alone(t, sp))
	awaitSteady(t, s)
	sp.Server.Restart(t)
	wait.Eventually(t, 5*time.Second, func() bool {
		return strings.Contains(l.String(), "no verdict on workers for 1s: Redis was away")
	}, "the restart is not noticed\n%s", l)
	awaitSteady(t, s)
}

// offsetClock is TIME with seconds that a test adds to it.
const offsetClock = `
local function time()
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(redis.call('HGET', KEYS[1], 'test_offset') or 0), tonumber(t[2])
end
`

// The clock of Redis jumps, there and back: all leases seem to be over, or none ever.
// Nobody is lost who lives, the dead are, and the jump is named.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]int{"forward by 1h": 3600, "back by 1h": -3600} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			clock := conn.WithClock(offsetClock)
			s, l := launch(t, sp, leased, func(o *options) { o.store = sp.Dial(t, clock) })
			awaitSteady(t, s)
			tick := patient(s)
			ids := openMany(t, sp, 100)
			st := sp.Dial(t, clock)
			lives := register(t, st, "lives", 100)
			begun := redisNow(t, st).Add(-statemachine.Second) // as much a step back may take
			for _, to := range []int{offset, 0} {              // by an hour one way, then the other
				sp.Raw.HSet(t.Context(), sp.Key("meta"), "test_offset", to)
				forward := to > offset || to == offset && to > 0
				wait.Eventually(t, 5*time.Second, func() bool {
					lives.renew(t)
					tick()
					step, err := st.LastStep(t.Context())
					return err == nil && step.At >= begun && step.By.Abs() > 59*time.Minute && (step.By > 0) == forward
				}, "the step is not kept\n%s", l)
			}
			register(t, st, "dead", 0)
			wait.Eventually(t, 10*time.Second, func() bool {
				lives.renew(t)
				tick()
				return strings.Contains(l.String(), "worker dead (node-a, host-a, 7) is lost")
			}, "after the jump nobody is ever lost\n%s", l)
			counts, err := sp.Store.Count(t.Context())
			if err != nil || counts[statemachine.Running] != int64(len(ids)) || strings.Contains(l.String(), "worker lives") {
				t.Errorf("counts %v, %v\n%s", counts, err, l)
			}
			for _, said := range []string{"has stepped forward by ", "has stepped back by "} {
				if !strings.Contains(l.String(), said) {
					t.Errorf("not said: %s\n%s", said, l)
				}
			}
		})
	}
}
