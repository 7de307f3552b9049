package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// serve runs a server until it is stopped.
func serve(t *testing.T, ns string, retention ...upkeep.Retention) (stop func()) {
	t.Helper()
	srv, err := server.New(storetest.At(t, storetest.Where(redistest.Shared(t)), ns, nil), server.Options{Settings: server.Settings{
		RoundDuration: 20 * time.Millisecond, RepairInterval: 10 * time.Millisecond, ArchiveRetention: retention,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return background(t, srv.Run)
}

// background runs f until it is stopped.
func background(t *testing.T, f func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// crew is a worker with a session that executes, fails, hands back and leaves
// tasks.
type crew struct {
	*store.Store

	session fleet.Session
	rounds  int
}

func (c *crew) run(ctx context.Context) error {
	r, err := c.Register(ctx, task.Registration{
		Name: "crew", Node: "n", Host: "h", PID: 1, Identity: conn.NewToken(), Slots: 8, MaxThreads: task.Unlimited,
	})
	c.session = r.Session
	for ctx.Err() == nil && err == nil {
		err = c.round(ctx)
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the end of the test
	}
	return err
}

func (c *crew) round(ctx context.Context) error {
	if _, err := c.Renew(ctx, c.session, fleet.Heartbeat{State: task.WorkerReady}); err != nil {
		return err
	}
	turns := storetest.Free(task.Bucket{}, task.Bucket{Priority: 7})
	claimed, err := c.Claim(ctx, tasks.ClaimRequest{
		Worker: "crew", Request: conn.NewToken(), Candidates: turns, Max: 8, Node: "n", MaxThreads: task.Unlimited,
		Incarnation: c.session.Incarnation,
	})
	if err != nil {
		return err
	}
	for i := range claimed.Tasks {
		if err := c.end(ctx, &claimed.Tasks[i]); err != nil {
			return err
		}
	}
	return nil
}

// end ends a round in one of several ways. A stop that was asked for meanwhile makes
// some of them impossible.
func (c *crew) end(ctx context.Context, t *tasks.Claimed) error {
	c.rounds++
	o := statemachine.Occurrence{
		Event: statemachine.Report, Actor: statemachine.Worker, Claim: t.Task.Current.Claim, Round: t.Task.Round, Failed: c.rounds%5 == 0,
	}
	if c.rounds%7 == 0 {
		o.Event = statemachine.HandBack
	}
	move, err := statemachine.Decide(&t.Task, o, 1)
	if err != nil {
		return err
	}
	order := tasks.Commit{Move: move, Writer: "crew", Bucket: t.Bucket}
	if o.Failed {
		order.Fields = []string{statemachine.RoundField(t.Task.Round, "error"), "it broke"}
	}
	out, err := c.Apply(ctx, order)
	if err == nil && errors.Is(out[0].Err, statemachine.ErrStopAsked) {
		o.Event = statemachine.Terminate
		if move, err = statemachine.Decide(&t.Task, o, 1); err == nil {
			out, err = c.Apply(ctx, tasks.Commit{Move: move, Writer: "crew", Bucket: t.Bucket})
		}
	}
	if err == nil && out[0].Err != nil && !errors.Is(out[0].Err, statemachine.ErrStale) {
		err = out[0].Err
	}
	return err
}

// boss opens tasks and meddles with them.
func boss(s *store.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		for n := 0; ctx.Err() == nil; n++ {
			specs := make([]task.Definition, 10)
			for i := range specs {
				specs[i] = storetest.Define("source", "s", "timeout", "60", "max_fails", "1", "max_losses", "1", "priority", strconv.Itoa(i%2*7))
			}
			storetest.Set(&specs[3], "hold", "wait")
			storetest.Set(&specs[4], "end_before", "5")
			ids, err := s.Open(ctx, tasks.OpenRequest{Key: fmt.Sprint(n), Specs: specs})
			if err == nil {
				err = meddle(ctx, s, ids[0], statemachine.Cancel)
			}
			if err == nil {
				err = meddle(ctx, s, ids[3], statemachine.Unblock)
			}
			if err == nil {
				err = meddle(ctx, s, ids[5]-20, statemachine.Archive)
			}
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
		return nil
	}
}

// meddle does something to a task, if it can be done.
func meddle(ctx context.Context, s *store.Store, id int64, event statemachine.Event) error {
	found, now, err := s.Inspect(ctx, []int64{max(id, 1)})
	if err != nil {
		return err
	}
	t := &found[0]
	move, err := statemachine.Decide(&t.Task.Task, statemachine.Occurrence{Event: event, Actor: statemachine.Manager}, now)
	if err != nil {
		return nil //nolint:nilerr // it is elsewhere
	}
	order := tasks.Commit{Move: move, Writer: "boss", Bucket: t.Task.Bucket}
	if move.AskStop {
		_, err = s.AskStop(ctx, order)
	} else {
		_, err = storetest.Apply(ctx, s, order)
	}
	return err
}

// TestBusyNamespace: while a server, a worker and a manager are at work on everything, nothing
// is found, not even a note.
func TestBusyNamespace(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	defer serve(t, ns)()
	defer background(t, (&crew{Store: worktest.Open(t, ns)}).run)()
	defer background(t, boss(worktest.Open(t, ns)))()
	wait.Eventually(t, 20*time.Second, func() bool {
		n, err := s.LastID(t.Context())
		return err == nil && n > 200
	}, "nothing is opened")
	for range 3 {
		r, err := Verify(t.Context(), s)
		if err != nil || !r.OK() || len(r.Notes) > 0 || r.History.Events == 0 {
			t.Errorf("%+v, %+v, %v, want nothing", r.Violations, r.Notes, err)
		}
	}
}
