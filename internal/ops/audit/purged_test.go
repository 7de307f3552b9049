package audit

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
)

// two keeps two archived tasks of each outcome.
func two() (all []upkeep.Retention) {
	for _, outcome := range statemachine.Outcomes() {
		all = append(all, upkeep.Retention{Outcome: outcome, Most: 2})
	}
	return all
}

// archivist archives what has ended.
func archivist(s *store.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			for _, state := range statemachine.Outcomes() {
				ids, err := s.IDs(ctx, state, 0, 20, false)
				for _, id := range ids {
					if err == nil {
						err = meddle(ctx, s, id, statemachine.Archive)
					}
				}
				if err != nil && ctx.Err() == nil {
					return err
				}
			}
		}
		return nil
	}
}

// While two servers let archived tasks go that others archive, and one of them begins anew again and again, nothing is
// found, and in the end each id is accounted for once.
func TestBusyRetention(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	stopServer := serve(t, ns, two()...)
	stopCrew := background(t, (&crew{Store: worktest.Open(t, ns)}).run)
	defer background(t, archivist(worktest.Open(t, ns)))()
	stopBoss := background(t, boss(worktest.Open(t, ns)))
	purged := func() int64 {
		now, err := s.Census(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return now.Purged
	}
	for n := range int64(3) {
		stop := serve(t, ns, two()...)
		wait.Eventually(t, time.Minute, func() bool { return purged() > 5*n+2 }, "nothing goes")
		r, err := Verify(t.Context(), s)
		if err != nil || !r.OK() || len(r.Notes) > 0 || r.Account.Purged == 0 {
			t.Errorf("%+v, %+v, %+v, %v, want nothing but purged tasks", r.Violations, r.Notes, r.Account, err)
		}
		stop()
	}
	stopBoss()
	stopCrew()
	stopServer()
	r, err := Verify(t.Context(), s)
	a := r.Account
	if err != nil || !r.OK() || a.Purged != purged() || a.Opened != a.InStates+a.Purged {
		t.Errorf("%+v, %+v, %v", r.Violations, a, err)
	}
}

// What is counted and what is noted of purged tasks must be the same, and both must leave the sum right.
func TestPurgedSum(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command []string
		sound   bool
	}{
		"as it is":        {nil, true},
		"one not noted":   {[]string{"ZREM", "purged_ids", "6"}, false},
		"one not counted": {[]string{"HSET", "purged", "succeeded", "0"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, s, id := world(t)
			task, err := s.Task(t.Context(), id["archived"])
			if err != nil {
				t.Fatal(err)
			}
			out := []upkeep.Outgoing{{ID: task.ID, Rev: task.Rev, Outcome: task.Outcome}}
			if got, err := s.Purge(t.Context(), out); err != nil || !slices.Equal(got, []upkeep.Purged{upkeep.PurgeDone}) {
				t.Fatal(got, err)
			}
			if c.command != nil {
				args := slices.Clone(c.command)
				args[1] = ns + ":" + args[1]
				redistest.Shared(t).Do(t, args...)
			}
			r, err := Verify(t.Context(), s)
			if err != nil || r.OK() != c.sound || c.sound && r.Account.Purged != 1 {
				t.Errorf("%+v, %+v, %v", r.Violations, r.Account, err)
			}
		})
	}
}
