package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// claimAhead makes a worker of two slots claim three tasks at a time, two of them ahead, and fall silent.
func claimAhead(t *testing.T, sp *storetest.Space, claims int) {
	t.Helper()
	if err := sp.Store.PublishLease(t.Context(), timing.FromStd(lease)); err != nil {
		t.Fatal(err)
	}
	r := registration("w", conn.NewToken())
	r.Slots = 2
	reg, err := sp.Store.Register(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range claims {
		sp.SetClock(t, at(0).Add(statemachine.Duration(i)))
		got, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
			Worker: "w", Incarnation: reg.Incarnation, Request: conn.NewToken(),
			Candidates: storetest.Free(task.Bucket{}), Max: 3, Ahead: 2, MaxThreads: task.Unlimited,
		})
		if err != nil || len(got.Tasks) != 3 {
			t.Fatalf("claimed %d tasks: %v", len(got.Tasks), err)
		}
	}
}

// charged lets the server find the worker lost, and checks that its first two tasks paid for that, and none of the others.
func charged(t *testing.T, sp *storetest.Space, s *Server, ids []int64, counter statemachine.Counter) {
	t.Helper()
	sp.SetClock(t, at(20))
	steadied(t, s)
	pass(t, s)
	for i, id := range ids {
		want := map[string]string{"round": "1", "state": "open", "losses": "", "timeouts": "0", "releases": ""}
		if i >= 2 {
			counter = statemachine.Releases
		}
		want[string(counter)] = "1"
		checkFields(t, sp, id, want)
	}
}

// Of a lost worker's rounds, those that it cannot have begun cost their tasks nothing, however few a call takes.
func TestLossOfTasksClaimedAhead(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"in one call": 100, "one by one": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			s, _ := newServer(t, sp, leased, func(o *options) { o.BatchSize, o.RepairBatch = size, size })
			ids := openMany(t, sp, 6)
			claimAhead(t, sp, 2)
			charged(t, sp, s, ids, statemachine.Losses)
		})
	}
}

// A server that is interrupted while it takes them back leaves to the next one what it would have done itself.
func TestInterruptedLossOfTasksClaimedAhead(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, leased)
	ids := openMany(t, sp, 6)
	claimAhead(t, sp, 2)
	sp.SetClock(t, at(20))
	lost, err := s.store.Lost(t.Context(), 1, fleet.Watched{})
	if err != nil {
		t.Fatal(err)
	}
	commits := s.decide(t.Context(), heldBy(lost), statemachine.Lose, nobody, nil)
	if _, _, err := s.apply(t.Context(), commits[:3]); err != nil {
		t.Fatal(err)
	}
	charged(t, sp, s, ids, statemachine.Losses)
}

// A task that has not begun has not timed out either.
func TestOverdueAhead(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, leased)
	ids := openMany(t, sp, 3, func(d *task.Definition) { storetest.Set(d, "timeout", "1", "max_timeouts", "1") })
	claimAhead(t, sp, 1)
	charged(t, sp, s, ids, statemachine.Timeouts)
}
