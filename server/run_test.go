package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func zEntry(score statemachine.Time, id string) redis.Z {
	return redis.Z{Score: float64(score) / 1e6, Member: id}
}

func awaitState(t *testing.T, sp *storetest.Space, id int64, want statemachine.State, within time.Duration) {
	t.Helper()
	wait.Eventually(t, within, func() bool {
		task, err := sp.Store.Task(t.Context(), id)
		return err == nil && task.State == want
	}, "task %d is not %s", id, want)
}

func awaitCount(t *testing.T, sp *storetest.Space, state statemachine.State, want int64) {
	t.Helper()
	wait.Eventually(t, 10*time.Second, func() bool {
		counts, err := sp.Store.Count(t.Context())
		return err == nil && counts[state] == want
	}, "no %d tasks are %s", want, state)
}

// A47: a line each round_duration; the timer is the test's.
func TestIntervalsAreLogged(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	asked, ticks := make(chan time.Duration), make(chan time.Time)
	l := start(t, sp, setting(t, "round_duration=0.7"), func(o *options) {
		o.after = func(d time.Duration) <-chan time.Time {
			select {
			case asked <- d:
			case <-time.After(10 * time.Second):
			}
			return ticks
		}
	})
	for range 3 {
		if d := wait.Receive(t, 5*time.Second, asked, "no interval begins"); d != 700*time.Millisecond {
			t.Errorf("interval lasts %v, want 0.7s", d)
		}
		ticks <- time.Time{}
	}
	wait.Receive(t, 5*time.Second, asked, "no fourth interval")
	for _, line := range []string{`"msg":"processed","interval":0,"tasks":0}`, `"msg":"processed","interval":2,"tasks":0}`} {
		if !strings.Contains(l.String(), line) {
			t.Errorf("no line %s in\n%s", line, l)
		}
	}
	if strings.Contains(l.String(), `"interval":3`) {
		t.Error("an interval ended before its time")
	}
}

// A report wakes the server; nobody waits for the end of a round.
func TestReactsAtOnce(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp, func(o *options) { o.RoundDuration = time.Hour })
	sp.Open(t, storetest.Spec())
	run(t, sp, "")
	awaitState(t, sp, 1, statemachine.Succeeded, 900*time.Millisecond)
}

// A deadline is met by its own timer.
func TestDeadlineTimer(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp, func(o *options) { o.RoundDuration = time.Hour })
	now, err := sp.Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", now.Add(statemachine.Second/2).Text()) }))
	awaitState(t, sp, 1, statemachine.Expired, 3*time.Second)
	task := sp.Task(t, 1)
	if late := storetest.Stamps(task, 0)["expired"].Sub(task.EndBefore); late > 1500*statemachine.Millisecond {
		t.Errorf("expired %s s late", late.Text())
	}
}

// T14: Redis goes away and comes back; the server carries on.
func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithAppendOnly())
	sp := &storetest.Space{Server: srv, Namespace: redistest.Namespace(t), Where: storetest.Where(srv)}
	sp.Store = sp.Dial(t)
	sp.Raw = redis.NewClient(&redis.Options{Addr: srv.Socket()})
	defer sp.Raw.Close()
	l := start(t, sp, fast)
	sp.Open(t, storetest.Spec(), storetest.Spec())
	run(t, sp, "")
	awaitState(t, sp, 1, statemachine.Succeeded, 5*time.Second)
	srv.Kill(t)
	wait.Eventually(t, 10*time.Second, func() bool { return strings.Contains(l.String(), "lost the connection to redis") }, "no line about the loss")
	srv.Restart(t)
	run(t, sp, "")
	awaitState(t, sp, 2, statemachine.Succeeded, 10*time.Second)
	wait.Eventually(t, 10*time.Second, func() bool { return strings.Contains(l.String(), "redis answers again") }, "no line about the return")
}

func TestStartRefusals(t *testing.T) {
	t.Parallel()
	evicting := redistest.Start(t, redistest.WithConfig("maxmemory-policy", "allkeys-lru"))
	secret := redistest.Start(t, redistest.WithPassword("right"))
	newer, older := storetest.New(t), storetest.New(t)
	newer.Raw.HSet(t.Context(), newer.Key("meta"), "protocol", "99.0")
	older.Raw.HSet(t.Context(), older.Key("meta"), "protocol", "0.9")
	wrong, nodb, nobody := storetest.Where(secret), storetest.Where(evicting), storetest.Where(secret)
	wrong.Password, nodb.DB, nobody.Host, nobody.Port = "wrong", 99, "127.0.0.1", 1
	for name, c := range map[string]struct {
		st   *store.Store
		want error
		says string
	}{
		"policy":    {dial(t, storetest.Where(evicting), "n"), task.ErrUnfit, "noeviction"},
		"password":  {dial(t, wrong, "n"), task.ErrUnreachable, "[redis] password"},
		"database":  {dial(t, nodb, "n"), task.ErrUnreachable, "[redis] db = 99"},
		"unreached": {dial(t, nobody, "n"), task.ErrUnreachable, "127.0.0.1:1"},
		"newer":     {newer.Store, task.ErrProtocol, "upgrade"},
		"older":     {older.Store, task.ErrProtocol, "finish and export"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := assemble(withDefaults("s", c.st))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // a server that does not refuse runs on
			defer cancel()
			err = s.Run(ctx)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want %v that says %q", err, c.want, c.says)
			}
			if strings.Contains(err.Error(), "wrong") {
				t.Errorf("the password is in the error: %v", err)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for what, change := range map[string]func(*options){
		"no name": func(o *options) { o.Name = "" },
		"name":    func(o *options) { o.Name = "a/b" }, "batch": func(o *options) { o.BatchSize = -1 },
		"large batch": func(o *options) { o.BatchSize = tasks.MaxMoves + 1 }, "no batch": func(o *options) { o.BatchSize = 0 },
		"round": func(o *options) { o.RoundDuration = -1 }, "lease": func(o *options) { o.WorkerTimeout = -1 },
		"grace": func(o *options) { o.TimeoutGrace = -1 }, "quarantine": func(o *options) { o.Quarantine = "perhaps" },
	} {
		opt := fromConfig(config.Defaults().Server)
		opt.Name, opt.store = "s", sp.Store
		change(&opt)
		if _, err := assemble(opt); !errors.Is(err, errOption) {
			t.Errorf("%s: %v, want an error about an option", what, err)
		}
	}
}

// A setting may mean none.
func TestSettingsOfNone(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, setting(t, "timeout_grace=0", "events=0"))
	sp.SetClock(t, at(0))
	if err := keeperOf(s).publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "timeout", "2", "max_timeouts", "1") }))
	sp.Claim(t, "w", 1)
	sp.SetClock(t, at(2.001))
	pass(t, s)
	checkState(t, sp, 1, statemachine.Open)
	if events, err := sp.Store.Events(t.Context(), 0, 1); err != nil || len(events) > 0 {
		t.Errorf("events %v, %v, want none", events, err)
	}
}

func TestCancelBeforeRun(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Errorf("Run with an ended context: %v", err)
	}
}

func dial(t *testing.T, where config.Redis, ns string) *store.Store {
	t.Helper()
	st, err := store.Dial(where, ns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}
