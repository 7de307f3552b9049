package worker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// lease makes the lease of the namespace so long.
func (s *site) lease(t *testing.T, d sm.Duration) {
	t.Helper()
	if err := s.Store.PublishLease(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// shorten makes the lease so long, and waits until the worker knows.
func (s *site) shorten(t *testing.T, w *running, d sm.Duration) {
	t.Helper()
	s.lease(t, d)
	w.signalChange()
	wait.Eventually(t, patience, func() bool { return w.lease.interval() == timing.ToStd(d)/3 }, "the worker keeps the old lease")
}

// takeBackLost does what a server does when leases are over; it returns how many
// tasks it took back.
func (s *site) takeBackLost(t *testing.T) int {
	t.Helper()
	lost, err := s.Store.Lost(t.Context(), 100, fleet.Watched{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, w := range lost.Workers {
		for i := range w.Tasks {
			if s.decide(t, &w.Tasks[i], sm.Lose, lost.Now) {
				n++
			}
		}
	}
	return n
}

// ledger is a program that notes in a file outside TDF that it runs, every 10 ms.
const ledger = `while :; do echo "$TDF_ROUND" >> "$1"; sleep 0.01; done`

func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// A worker that is cut off kills its program before its lease is over for the
// server; when it is back it goes on under a new incarnation.
func TestCutOffWorkerKillsItsPrograms(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stop", "finish"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.lease(t, 3*sm.Second)
			notes := filepath.Join(t.TempDir(), "ledger")
			id := s.open(t, s.script(t, "p", ledger), input(notes))
			proxy, st := s.behindProxy(t)
			w := s.startOn(t, st, setting(t, "on_redis_loss="+name))
			awaitFile(t, notes)
			proxy.Hang() // silence proves nothing, so both ways stop
			wait.Eventually(t, patience, func() bool { return s.takeBackLost(t) == 1 }, "the worker is never lost")
			before := len(lines(t, notes))
			wait.Never(t, 500*time.Millisecond, func() bool { return len(lines(t, notes)) != before },
				"the program runs although its task was taken back")
			w.log.await(t, "could not renew the lease in time")
			held := s.Claim(t, "other", 1)
			proxy.Release()
			w.log.await(t, `"incarnation":2`)
			if out := s.Report(t, &held[0], "theirs", ""); out.Err != nil {
				t.Errorf("the holder's report: %v", out.Err)
			}
			checkFields(t, s.Task(t, id), map[string]string{
				"losses": "1", "round": "1", "0:output": "-", "1:output": "theirs", "state": "executed",
			})
			next := s.open(t, s.script(t, "q", "true"))
			s.await(t, next, sm.Executed)
		})
	}
}

// siteOnTCP is a site on a Redis of its own, reached by TCP, which can be stopped.
func siteOnTCP(t *testing.T) *site {
	t.Helper()
	// It is stopped in order only, and a heartbeat that waits for a busy disk may be late for its lease.
	s := siteOn(t, storetest.On(t, redistest.Start(t, redistest.WithConfig("appendonly", "yes"), redistest.WithConfig("appendfsync", "no"))))
	host, port, err := net.SplitHostPort(s.Server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	s.Where.Host, s.Where.Username, s.Where.Password = host, "", s.Server.Password() // users do not survive a restart
	if s.Where.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	s.Store = s.Dial(t)
	return s
}

// B2: Redis itself is away for longer than the lease. With finish the program
// goes on and its result is delivered; with stop it is killed and handed back.
func TestRedisAwayLongerThanTheLease(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]bool{"stop": false, "finish": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := siteOnTCP(t)
			started, release := twoFiles(t)
			id := s.open(t, s.script(t, "p", waiting), input(started+" "+release))
			st, err := store.Dial(s.Where, s.Namespace)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			w := s.startOn(t, st, setting(t, "on_redis_loss="+name))
			awaitFile(t, started)
			// The lease is short only while Redis is away: a busy machine may be late with a heartbeat.
			s.shorten(t, w, 3*sm.Second)
			s.Server.Stop(t)
			if !finish {
				w.log.await(t, "could not renew the lease in time")
				s.Server.Restart(t)
				s.lease(t, fleet.DefaultLease*sm.Second)
				wait.Eventually(t, patience, func() bool { return s.Task(t, id).Round == 1 }, "the task is not handed back")
				touch(t, release)
				checkFields(t, s.await(t, id, sm.Executed), map[string]string{"releases": "1", "losses": "-", "round": "1"})
				return
			}
			wait.Never(t, 4*time.Second, func() bool { return w.log.count("could not renew") > 0 }, "the lease ended")
			touch(t, release)
			w.log.await(t, "keeping a result on disk")
			s.Server.Restart(t)
			checkFields(t, s.await(t, id, sm.Executed), map[string]string{"0:output": "done 0\n", "round": "0"})
			files, err := filepath.Glob(filepath.Join(w.opts.SpoolDir, "*", "*"))
			if err != nil || len(files) > 1 { // the lock stays
				t.Errorf("the spool holds %v, %v", files, err)
			}
		})
	}
}

// A result that could not be delivered before the worker's end is delivered by
// its successor, before that gives up what was held.
func TestSpoolIsDeliveredByTheSuccessor(t *testing.T) {
	t.Parallel()
	s := siteOnTCP(t)
	s.lease(t, 3*sm.Second) // so long does the successor wait
	started, release := twoFiles(t)
	id := s.open(t, s.script(t, "p", waiting), input(started+" "+release))
	st, err := store.Dial(s.Where, s.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	spool := t.TempDir()
	hasty, place := func(o *options) { o.stopTimeout = 300 * time.Millisecond }, setting(t, "spool_dir="+spool, "on_redis_loss=finish")
	w := s.startOn(t, st, hasty, place)
	awaitFile(t, started)
	s.Server.Stop(t)
	touch(t, release)
	w.log.await(t, "keeping a result on disk")
	w.stop(t)
	s.Server.Restart(t)
	s.start(t, hasty, place)
	task := s.await(t, id, sm.Executed)
	checkFields(t, task, map[string]string{"0:output": "done 0\n", "round": "0", "losses": "-"})
}

// Without a lease in Redis, as after its keys were lost, the worker gives up its
// rounds and registers again.
func TestLeaseTakenAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	notes := filepath.Join(t.TempDir(), "ledger")
	id := s.open(t, s.script(t, "p", ledger), input(notes))
	w := s.start(t)
	awaitFile(t, notes)
	if err := s.Raw.HSet(t.Context(), s.Key("worker:w"), "state", "lost").Err(); err != nil {
		t.Fatal(err)
	}
	w.signalChange()
	w.log.await(t, "lost the lease")
	w.log.await(t, `"incarnation":2`)
	task := s.await(t, id, sm.Running)
	wait.Eventually(t, patience, func() bool { task = s.Task(t, id); return task.State == sm.Running && task.Round == 1 },
		"the task does not run again")
	checkFields(t, task, map[string]string{"1:worker": "w", "1:incarnation": "2"})
}

// A52, A16: two workers of one name.
func TestSecondWorkerOfANameIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.lease(t, 3*sm.Second)
	started, release := twoFiles(t)
	id := s.open(t, s.script(t, "p", waiting), input(started+" "+release))
	s.start(t)
	awaitFile(t, started)
	o := s.options(t, s.Dial(t))
	o.SpoolDir = t.TempDir()
	second, err := assemble(o)
	if err != nil {
		t.Fatal(err)
	}
	err = second.Run(t.Context())
	taken, ok := errors.AsType[*fleet.NameTakenError](err)
	if !ok || !errors.Is(err, conn.ErrNameTaken) {
		t.Fatalf("the second worker ended with %v", err)
	}
	checkContains(t, "error", taken.Error(), `"w"`, strconv.Itoa(os.Getpid()))
	touch(t, release)
	checkFields(t, s.await(t, id, sm.Executed), map[string]string{"round": "0", "0:output": "done 0\n"})
}

// A name whose worker is silent becomes free with the end of its lease, and its
// tasks are taken back before anything is claimed.
func TestSuccessorTakesBackFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.lease(t, 3*sm.Second)
	id := s.open(t, s.script(t, "p", `echo $TDF_ROUND`))
	r, err := s.Store.Register(t.Context(), task.Registration{Name: "w", Identity: "elsewhere", Slots: 1})
	if err != nil || len(r.Former) > 0 {
		t.Fatal(r, err)
	}
	reply, err := s.Store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Incarnation: r.Incarnation, Request: conn.NewToken(), Candidates: storetest.Free(task.Bucket{}), Max: 1,
	})
	if err != nil || len(reply.Tasks) != 1 {
		t.Fatal(reply, err)
	}
	s.start(t)
	task := s.await(t, id, sm.Executed)
	checkFields(t, task, map[string]string{"losses": "1", "round": "1", "1:output": "1\n", "1:incarnation": "2"})
	if n := strings.Count(task.Fields["log"], "running -> open"); n != 1 {
		t.Errorf("taken back %d times:\n%s", n, task.Fields["log"])
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	own := identity("x")
	words := strings.Fields(own)
	if len(words) != 5 || dead(own) {
		t.Fatalf("identity %q of a living process, dead: %v", own, dead(own))
	}
	for _, gone := range []string{
		fmt.Sprintf("%s %s 999999999 1 x", words[0], words[1]),    // no such process
		fmt.Sprintf("%s %s %s 1 x", words[0], words[1], words[2]), // the number was used again
	} {
		if !dead(gone) {
			t.Errorf("%q is not dead", gone)
		}
	}
	for _, unclear := range []string{"", "x", "other-boot " + strings.Join(words[1:], " "), "- 1 999999999 1 x",
		fmt.Sprintf("%s pid:[1] 999999999 1 x", words[0])} {
		if dead(unclear) {
			t.Errorf("%q is dead", unclear)
		}
	}
}
