package acceptance

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// D1: the clocks of workers, servers and managers do not matter. They cannot be
// set here, so that of Redis is: all of them are an hour late, or early, by it.
// Times of tasks, timeouts, leases and losses are the same.
func TestLongClocks(t *testing.T) {
	t.Parallel()
	for name, shift := range map[string]time.Duration{"an hour late": time.Hour, "an hour early": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := redistest.NewClock(t)
			clock.Set(t, shift)
			w := worldOn(t, storetest.On(t, redistest.Start(t, redistest.WithClock(clock))))
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
	if start := storetest.Stamps(task, 0)["running"]; start < now.Add(2*sm.Second) {
		t.Errorf("started %s s after now, want start_after = 2", start.Sub(now).Text())
	} else {
		within(t, "from start_after to the start", now.Add(2*sm.Second), start, 2*sm.Second)
	}
	stamps := storetest.Stamps(w.archived(t, ids[1], sm.TimedOut), 0)
	if took := stamps["timed_out"].Sub(stamps["running"]); took < sm.Second {
		t.Errorf("timed out after %s s, want timeout = 1", took.Text())
	}
	within(t, "a round with timeout = 1", stamps["running"], stamps["timed_out"], 3*sm.Second)
	ended := storetest.Stamps(w.archived(t, ids[2], sm.Expired), 0)["expired"]
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

// The clock of Redis steps under a whole site, by itself or because a replica takes over
// whose host has another one: by half a minute or an hour back, or an hour forward and
// back. What waits is run at once, what runs goes on though its timeout seems to be over,
// no living worker is lost and a dead one is, and no two rounds of a task overlap.
func TestLongClockSteps(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]time.Duration{
		"half a minute back": {-30 * time.Second}, "an hour back": {-time.Hour}, "an hour forward and back": {time.Hour, 0},
	} {
		for how, replica := range map[string]bool{"set": false, "failover": true} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				s := newStepping(t)
				s.run(t, steps, replica)
			})
		}
	}
}

// A worker that takes longer to stop a program than servers wait for its report refuses to start. Where a
// server publishes a shorter timeout_grace later, it waits for the worker: no two rounds of a task overlap.
func TestGraces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.leasing(t, "server.timeout_grace=5")
	w.publishes(t, "5.000000")
	_, stderr, code := run(t, w.own(t, "long"), append([]string{program(t, "tdf-worker")}, w.workerArgs("long", "kill_grace=5")...)...)
	if code != cli.ExitUsage {
		t.Errorf("ended with %d, want %d", code, cli.ExitUsage)
	}
	contains(t, "the message", stderr, `[worker] kill_grace = "5s"`, "timeout_grace = 5.000000 s", "make it shorter, or [server] timeout_grace longer")

	w.worker(t, "one", "slots=1", "kill_grace=1.5").Says(t, "no open task to claim")
	w.serverWith(t, "second", shortLeaseSet, "server.timeout_grace=0.1")
	w.publishes(t, "0.100000")
	w.leave(t, first)
	spec, l := w.deaf(t)
	spec.Timeout, spec.MaxTimeouts = 3*time.Second, task.AtMost(9)
	id := w.open(t, spec)[0]
	l.begun(t, 0, 1)
	w.worker(t, "other", "slots=1", "kill_grace=0.05")
	l.begun(t, 1, 1)
	l.release(t)
	checkFields(t, w.archived(t, id, sm.Succeeded), map[string]string{"losses": "-", "0:worker": "one"})
	l.noOverlap(t)
	w.sound(t)
}

// publishes waits until a server has said how long it leaves an overdue round to its worker.
func (w *world) publishes(t *testing.T, grace string) {
	t.Helper()
	wait.Eventually(t, patience, func() bool {
		return w.Raw.HGet(t.Context(), w.Key("meta"), "timeout_grace").Val() == grace
	}, "no server publishes timeout_grace = %s", grace)
}

// stepping is a site on a Redis whose clock steps.
type stepping struct {
	*world
	clock *redistest.Clock
}

func newStepping(t *testing.T) *stepping {
	t.Helper()
	clock := redistest.NewClock(t)
	srv := redistest.Start(t, redistest.WithClock(clock), redistest.WithConfig("repl-diskless-sync-delay", "0"))
	host, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	sp := &storetest.Space{Server: srv, Namespace: redistest.Namespace(t), Where: storetest.Where(srv)}
	sp.Where.Host = host
	if sp.Where.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	sp.Store = sp.Dial(t)
	sp.Raw = redis.NewClient(&redis.Options{Addr: srv.Addr(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = sp.Raw.Close() })
	return &stepping{worldOn(t, sp), clock}
}

// fail makes a replica take the place of Redis, whose clock shows another time.
func (s *stepping) fail(t *testing.T, off time.Duration) {
	t.Helper()
	s.clock = redistest.NewClock(t)
	s.clock.Set(t, off)
	replica := redistest.Start(t, redistest.WithClock(s.clock))
	replica.Do(t, "REPLICAOF", s.Where.Host, strconv.Itoa(s.Where.Port))
	wait.Eventually(t, patience, func() bool {
		return strings.Contains(fmt.Sprint(replica.Do(t, "INFO", "replication")), "master_link_status:up")
	}, "the replica does not follow")
	s.Server.Do(t, "CLIENT", "PAUSE", "600000", "WRITE") // nothing is lost
	info := fmt.Sprint(s.Server.Do(t, "INFO", "replication"))
	_, offset, _ := strings.Cut(info, "master_repl_offset:")
	offset, _, _ = strings.Cut(offset, "\r")
	wait.Eventually(t, patience, func() bool {
		_, got, _ := strings.Cut(fmt.Sprint(replica.Do(t, "INFO", "replication")), "slave_repl_offset:")
		got, _, _ = strings.Cut(got, "\r")
		return len(got) > len(offset) || len(got) == len(offset) && got >= offset
	}, "the replica does not have it all")
	s.Server.Kill(t)
	replica.Do(t, "REPLICAOF", "NO", "ONE")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", s.Server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	redistest.NewProxyOn(t, listener, "tcp", replica.Addr())
}

func (s *stepping) run(t *testing.T, steps []time.Duration, replica bool) {
	server := s.leasing(t, "server.worker_timeout=12") // six sites at once must be able to keep it
	spec, l := s.beating(t)
	spec.Timeout = time.Hour / 2
	id := s.open(t, spec)[0]
	s.worker(t, "one", "slots=1")
	l.begun(t, 0, 1)
	var second *daemon
	for i, off := range steps {
		waits := s.open(t, s.script(t, "quick", "true"), s.script(t, "slow", "sleep 13")) // more than a lease
		if replica && i == 0 {
			s.fail(t, off)
		} else {
			s.clock.Set(t, off)
		}
		if second == nil {
			second = s.worker(t, "dies", "slots=1")
		}
		for _, waiting := range waits {
			s.archived(t, waiting, sm.Succeeded)
		}
		checkFields(t, s.await(t, id, sm.Running), map[string]string{"round": "0", "losses": "-", "timeouts": "0"})
	}
	other := s.open(t, spec)[0]
	l.begun(t, 0, 2)
	s.worker(t, "other")
	second.Kill(t)
	s.reopened(t, other)
	l.begun(t, 1, 1)
	l.release(t)
	s.archived(t, id, sm.Succeeded)
	s.lostOnce(t, other, "dies", "other")
	l.noOverlap(t)
	if !strings.Contains(server.Log.String(), "the clock of Redis has stepped") && !replica {
		t.Errorf("the server does not name the step:\n%s", server.Log.String())
	}
	s.sound(t)
}
