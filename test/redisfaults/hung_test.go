package redisfaults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

// hold lets a fault last.
func hold(t *testing.T, d time.Duration) {
	t.Helper()
	wait.Never(t, d, t.Failed, "somebody has given up")
}

// B4: Redis hangs for a while, its connections stay open.
func TestHung(t *testing.T) {
	t.Parallel()
	srv := durable(t)
	tm := newTeam(t, storetest.Where(srv))
	stop := tm.load(t)
	for _, d := range inEarnest([]time.Duration{8 * time.Second}, []time.Duration{3 * time.Second, 8 * time.Second, 12 * time.Second}) {
		srv.Pause(t)
		hold(t, d)
		srv.Resume(t)
		tm.recovers(t, fmt.Sprintf("after %v without an answer", d), time.Now(), restartBar)
	}
	stop()
	tm.settled(t)
}

// calls are one of each kind; none is given a deadline.
func calls(st *store.Store, session fleet.Session) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"command":     func(ctx context.Context) error { _, err := st.Now(ctx); return err },
		"pipeline":    func(ctx context.Context) error { _, err := st.Buckets(ctx); return err },
		"transaction": func(ctx context.Context) error { _, err := st.Count(ctx); return err },
		"read":        func(ctx context.Context) error { _, err := st.Task(ctx, 1); return err },
		"script": func(ctx context.Context) error {
			_, err := st.Open(ctx, tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}})
			return err
		},
		"heartbeat":   func(ctx context.Context) error { _, err := st.Renew(ctx, session, fleet.Heartbeat{}); return err },
		"check":       func(ctx context.Context) error { _, err := st.Check(ctx); return err },
		"server wait": func(ctx context.Context) error { _, err := st.WaitServer(ctx, waited); return err },
		"worker wait": func(ctx context.Context) error {
			_, err := storetest.Wait(ctx, st, tasks.WaitFor{Worker: "w", Candidates: storetest.Free(task.Bucket{})}, waited)
			return err
		},
		"live output": func(ctx context.Context) error { _, _, err := st.Chunks(ctx, 1, "", waited); return err },
	}
}

// waited is how long calls that wait would wait.
const waited = 500 * time.Millisecond

// timed makes all calls at once, each many times over, so that no connection is
// left, and returns how long the slowest of each kind took.
func timed(of map[string]func(context.Context) error, times int) (took map[string]time.Duration, failed map[string]error) {
	took, failed = map[string]time.Duration{}, map[string]error{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for name, call := range of {
		for range times {
			all.Go(func() {
				begun := time.Now()
				err := call(context.Background())
				mu.Lock()
				defer mu.Unlock()
				took[name] = max(took[name], time.Since(begun))
				if err != nil {
					failed[name] = err
				}
			})
		}
	}
	all.Wait()
	return took, failed
}

// B4: however a call is made, it ends within the time to connect, to send and to
// receive once, and what it would have waited: also without a deadline, with all
// repetitions, and when no connection is free.
func TestCallsEndInTime(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]conn.Option{
		"repeated": {conn.WithPoolSize(3)}, "not repeated": {conn.WithPoolSize(3), conn.WithRetries(-1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.On(t, redistest.Start(t))
			sp.Where.DialTimeout, sp.Where.WriteTimeout, sp.Where.ReadTimeout = time.Second, time.Second, time.Second
			st := sp.Dial(t, opts...)
			session := sp.Register(t, "w")
			of := calls(st, session)
			if _, failed := timed(of, 1); len(failed) > 1 { // no task 1 yet
				t.Fatalf("before: %v", failed)
			}
			sp.Server.Pause(t)
			checkEnd(t, of, 3*time.Second+waited+500*time.Millisecond)
			sp.Server.Resume(t)
			wait.Eventually(t, restartBar, func() bool {
				_, failed := timed(of, 1)
				return len(failed) == 0
			}, "calls fail after the Redis went on")
		})
	}
}

// checkEnd makes all calls on a Redis that does not answer.
func checkEnd(t *testing.T, of map[string]func(context.Context) error, bar time.Duration) {
	t.Helper()
	took, failed := timed(of, 5)
	ended := time.Now()
	for name, d := range took {
		if failed[name] == nil {
			t.Errorf("%s succeeds", name)
		}
		wait.Within(t, name, ended.Add(-d), ended, bar)
	}
	longest := slices.MaxFunc(slices.Collect(maps.Keys(took)), func(a, b string) int { return int(took[a] - took[b]) })
	t.Logf("longest call without an answer: %s, %.1f s (bar %.1f s)", longest, took[longest].Seconds(), bar.Seconds())
}
