package worker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// waiting is a program that says it has begun and waits for a file.
const waiting = `echo go > "$1"; while [ ! -e "$2" ]; do sleep 0.01; done; echo done $TDF_ROUND`

func twoFiles(t *testing.T) (started, release string) {
	dir := t.TempDir()
	return filepath.Join(dir, "started"), filepath.Join(dir, "release")
}

// A13, A23: the server has taken the task back; a late report changes nothing.
func TestLateReportIsRefused(t *testing.T) {
	t.Parallel()
	for _, claimedAgain := range []bool{false, true} {
		t.Run("claimed again "+strconv.FormatBool(claimedAgain), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			started, release := twoFiles(t)
			id := s.open(t, s.script(t, "p", waiting), input(started+" "+release), limits("1000", "1"))
			w := s.start(t)
			awaitFile(t, started)
			s.takeBack(t, id)
			var second []tasks.Claimed
			if claimedAgain {
				second = s.Claim(t, "other", 1)
			} else if err := s.Raw.ZRem(t.Context(), s.Key("ready:default:::0"), "a1").Err(); err != nil {
				t.Fatal(err) // it was to be out of w's reach
			}
			before := s.Task(t, id).Fields
			touch(t, release)
			w.log.await(t, "could not mark task 1 as executed (timed out by server?)")
			for name, value := range s.Task(t, id).Fields {
				if before[name] != value {
					t.Errorf("the refused report changed %s from %q to %q", name, before[name], value)
				}
			}
			if claimedAgain {
				if out := s.Report(t, &second[0], "theirs", ""); out.Err != nil {
					t.Errorf("the holder's report: %v", out.Err)
				}
				checkFields(t, s.Task(t, id), map[string]string{
					"0:output": "-", "1:output": "theirs", "1:worker": "other",
				})
			}
			next := s.open(t, s.script(t, "q", "true"))
			s.await(t, next, sm.Executed) // the worker goes on
		})
	}
}

// behindProxy is a store whose connection a test can disturb.
func (s *site) behindProxy(t *testing.T) (*redistest.Proxy, *store.Store) {
	t.Helper()
	proxy := s.Server.Proxy(t)
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	where := s.Where
	where.Host = host
	if where.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	where.DialTimeout, where.ReadTimeout, where.WriteTimeout = time.Second, time.Second, time.Second
	st, err := store.Dial(where, s.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return proxy, st
}

// callWith matches script calls that have a word among keys and arguments.
func callWith(word string) redistest.Match {
	return func(args []string) bool {
		return strings.HasPrefix(strings.ToUpper(args[0]), "EVAL") && slices.Contains(args, word)
	}
}

// Lost replies: one is repeated by the client, ten by the worker itself.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"claim", "report"} {
		for _, lost := range []int{1, 10} {
			t.Run(call+" "+strconv.Itoa(lost), func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				ledger := filepath.Join(t.TempDir(), "ledger")
				p := s.script(t, "p", `echo $TDF_TASK_ID.$TDF_ROUND >> "$1"`)
				s.open(t, p, input(ledger))
				s.open(t, p, input(ledger))
				proxy, st := s.behindProxy(t)
				match := callWith(s.Key("claim:w"))
				if call == "report" {
					match = callWith(string(sm.Report))
				}
				var drops []*redistest.Fault
				for range lost {
					drops = append(drops, proxy.DropReply(match))
				}
				s.startOn(t, st)
				s.await(t, 1, sm.Executed)
				s.await(t, 2, sm.Executed)
				for i, d := range drops {
					if !d.Happened() {
						t.Errorf("reply %d was not lost", i)
					}
				}
				if got := awaitFile(t, ledger); got != "1.0\n2.0\n" {
					t.Errorf("ran %q, want each task once", got)
				}
				if n := strings.Count(s.Task(t, 1).Fields["log"], "running -> executed"); n != 1 {
					t.Errorf("the report is logged %d times", n)
				}
			})
		}
	}
}

// Redis goes away for 5 s while a program runs: its result is not lost, and the
// worker says once that Redis is gone and once that it is back.
func TestRedisGoesAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := twoFiles(t)
	id := s.open(t, s.script(t, "p", waiting), input(started+" "+release))
	proxy, st := s.behindProxy(t)
	w := s.startOn(t, st)
	awaitFile(t, started)
	proxy.Down()
	touch(t, release)
	w.log.await(t, "lost the connection to redis")
	wait.Never(t, 5*time.Second, func() bool { return s.Task(t, id).State != sm.Running },
		"reported while Redis was away")
	proxy.Up()
	checkFields(t, s.await(t, id, sm.Executed), map[string]string{"0:output": "done 0\n", "round": "0"})
	w.log.await(t, "redis answers again")
	next := s.open(t, s.script(t, "q", "true"))
	s.await(t, next, sm.Executed)
	// A renewal that set out in the outage may fail after the report has been answered: one loss and one return more.
	if n := w.log.count("lost the connection"); n != 1 && n != 2 {
		t.Errorf("the loss is said %d times", n)
	}
	wait.Eventually(t, patience, func() bool { return w.log.count("answers again") == w.log.count("lost the connection") },
		"the return is not said as often as the loss")
}

// Redis goes away while the worker is idle.
func TestRedisGoesAwayWhileIdle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	proxy, st := s.behindProxy(t)
	w := s.startOn(t, st)
	w.log.await(t, "no open task to claim")
	proxy.Down()
	w.log.await(t, "lost the connection to redis")
	id := s.open(t, s.script(t, "p", "true"))
	proxy.Up()
	s.await(t, id, sm.Executed)
}

// A worker that is stopped without Redis does not wait for ever.
func TestShutdownWithoutRedis(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := twoFiles(t)
	id := s.open(t, s.script(t, "p", waiting), input(started+" "+release))
	proxy, st := s.behindProxy(t)
	w := s.startOn(t, st, func(o *options) { o.stopTimeout = 500 * time.Millisecond })
	awaitFile(t, started)
	proxy.Down()
	begun := time.Now()
	w.stop(t)
	wait.Within(t, "stopping without Redis", begun, time.Now(), 4*time.Second)
	checkContains(t, "log", w.log.String(), "stopped without having reported task 1")
	if task := s.Task(t, id); task.State != sm.Running {
		t.Errorf("task is %s", task.State)
	}
}

// The worker is stopped while it does not know whether its claim was carried
// out: no task stays claimed by nobody.
func TestShutdownInDoubt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	proxy, st := s.behindProxy(t)
	w := s.startOn(t, st)
	w.log.await(t, "no open task to claim")
	var drops []*redistest.Fault
	for range 6 { // more than the client repeats
		drops = append(drops, proxy.DropReply(callWith(s.Key("claim:w"))))
	}
	ran := filepath.Join(t.TempDir(), "ran")
	id := s.open(t, s.script(t, "p", `echo x > "$1"`), input(ran))
	wait.Closed(t, patience, drops[0].Done(), "no claim was made")
	w.stop(t)
	// Redis may have dropped the claim with the connection, behind the wait: then there was none to hand back.
	if got := s.Task(t, id); got.State != sm.Open || got.Round != got.Releases || got.Round > 1 {
		t.Errorf("task is %s, round %d, with %d releases", got.State, got.Round, got.Releases)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program ran after the stop")
	}
}

// A damaged task is named in the log, and the others go on.
func TestDamagedTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", "true")
	bad, half, good := s.open(t, p), s.open(t, p), s.open(t, p)
	ctx := t.Context()
	if err := errors.Join(s.Raw.Del(ctx, s.Key("task:1")).Err(),
		s.Raw.HDel(ctx, s.Key("task:2"), "timeout").Err()); err != nil {
		t.Fatal(err)
	}
	w := s.start(t)
	s.await(t, good, sm.Executed)
	for _, id := range []int64{bad, half} {
		w.log.await(t, fmt.Sprintf(`"level":"ERROR","msg":"could not claim task %d","worker":"w","task":%[1]d,"error":"damaged task"}`, id))
	}
}

// A task deleted while it runs is dropped.
func TestTaskDeletedWhileRunning(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := twoFiles(t)
	s.open(t, s.script(t, "p", waiting), input(started+" "+release))
	w := s.start(t)
	awaitFile(t, started)
	if err := s.Raw.Del(t.Context(), s.Key("task:1")).Err(); err != nil {
		t.Fatal(err)
	}
	touch(t, release)
	w.log.await(t, "could not mark task 1 as executed")
	if n := s.Raw.Exists(t.Context(), s.Key("task:1")).Val(); n != 0 {
		t.Error("the report made the task again")
	}
	s.await(t, s.open(t, s.script(t, "q", "true")), sm.Executed)
}

// Redis refuses to write for a while, as when its replicas are missing: the
// result waits, in memory and on disk, and is recorded when Redis takes it.
func TestRedisTakesNothing(t *testing.T) {
	t.Parallel()
	s := siteOnTCP(t)
	started, release := twoFiles(t)
	id := s.open(t, s.script(t, "p", waiting), input(started+" "+release))
	w := s.start(t)
	awaitFile(t, started)
	replicas := func(least string) {
		t.Helper()
		if err := s.Raw.ConfigSet(t.Context(), "min-replicas-to-write", least).Err(); err != nil {
			t.Fatal(err)
		}
	}
	replicas("1")
	touch(t, release)
	w.log.await(t, "keeping a result on disk")
	replicas("0")
	checkFields(t, s.await(t, id, sm.Executed), map[string]string{"0:output": "done 0\n", "0:error": "", "round": "0"})
	s.await(t, s.open(t, s.script(t, "q", "true")), sm.Executed)
}
