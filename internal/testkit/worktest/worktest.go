// Package worktest plays worker and server on a namespace, for tests of what
// opens, reads and archives tasks: nothing is executed, a function says what
// each round gives.
//
// The package is imported from _test.go files only.
package worktest

import (
	"context"
	"fmt"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Result is what a round gives.
type Result struct {
	Output, Error string
	// Overdue ends the round as a worker does that stopped it after its timeout.
	Overdue bool
	// Lost ends it as a server does whose worker is gone.
	Lost bool
}

// Program says what a claimed task gives.
type Program func(t *tasks.Claimed) Result

// Echo succeeds with the input and a line end as output.
func Echo(t *tasks.Claimed) Result { return Result{Output: t.Spec.Input + "\n"} }

// Fail fails with a line on stderr.
func Fail(*tasks.Claimed) Result { return Result{Error: "it broke\n"} }

// Open returns a store on a namespace of the shared server; it is closed when
// the test ends.
func Open(tb testing.TB, namespace string) *store.Store {
	tb.Helper()
	s, err := store.Dial(storetest.Where(redistest.Shared(tb)), namespace)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// Round claims everything that is due, reports it, and settles all that is
// executed or overdue, once. It returns the number of rounds worked.
func Round(ctx context.Context, s *store.Store, program Program) (int, error) {
	c, err := s.Claim(ctx, tasks.ClaimRequest{
		Worker: "w", Request: conn.NewToken(), Candidates: storetest.Free(task.Bucket{}), Max: 100,
	})
	if err != nil {
		return 0, err
	}
	for i := range c.Tasks {
		if err := report(ctx, s, &c.Tasks[i], program(&c.Tasks[i]), c.Now); err != nil {
			return 0, err
		}
	}
	return len(c.Tasks), settle(ctx, s)
}

// Drain makes rounds until nothing is claimed any more.
func Drain(tb testing.TB, s *store.Store, program Program) {
	tb.Helper()
	for {
		n, err := Round(tb.Context(), s, program)
		if err != nil {
			tb.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

func report(ctx context.Context, s *store.Store, t *tasks.Claimed, r Result, now statemachine.Time) error {
	o := statemachine.Occurrence{
		Event: statemachine.Report, Actor: statemachine.Worker,
		Claim: t.Task.Current.Claim, Round: t.Task.Round, Failed: r.Error != "",
	}
	switch {
	case r.Overdue:
		o.Event = statemachine.StopOverdue
	case r.Lost:
		o = statemachine.Occurrence{Event: statemachine.Lose, Actor: statemachine.Server}
	}
	fields := []string{
		statemachine.RoundField(t.Task.Round, "output"), r.Output, statemachine.RoundField(t.Task.Round, "error"), r.Error,
	}
	return apply(ctx, s, &t.Task, t.Bucket, o, now, fields...)
}

// settle judges what is executed, and what a deadline has come for.
func settle(ctx context.Context, s *store.Store) error {
	executed, err := s.Listed(ctx, statemachine.Executed, 0, 1000)
	if err != nil {
		return err
	}
	due, err := s.Due(ctx, 1000)
	if err != nil {
		return err
	}
	for event, b := range map[statemachine.Event]tasks.Batch{
		statemachine.Settle: executed, statemachine.Deadline: due,
	} {
		for _, t := range b.Tasks {
			o := statemachine.Occurrence{Event: event, Actor: statemachine.Server}
			if err := apply(ctx, s, &t.Task, t.Bucket, o, b.Now); err != nil {
				return err
			}
		}
	}
	return nil
}

func apply(ctx context.Context, s *store.Store, t *statemachine.Task, b task.Bucket,
	o statemachine.Occurrence, now statemachine.Time, fields ...string,
) error {
	move, err := statemachine.Decide(t, o, now)
	if err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	outcomes, err := s.Apply(ctx, tasks.Commit{Move: move, Writer: "w", Bucket: b, Fields: fields})
	if err != nil {
		return err
	}
	return outcomes[0].Err
}
