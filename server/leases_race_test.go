package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// Two servers find the same workers lost: every loss counts once.
func TestTwoServersCountALossOnce(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	a, _ := launch(t, sp, leased)
	b, _ := launch(t, sp, leased, func(o *options) { o.Name = "other" })
	awaitSteady(t, a)
	awaitSteady(t, b)
	ids := openMany(t, sp, 200)
	register(t, sp.Store, "w-1", 100)
	register(t, sp.Store, "w-2", 100)
	awaitCount(t, sp, statemachine.Open, 200)
	for _, id := range ids {
		checkFields(t, sp, id, map[string]string{"losses": "1", "round": "1"})
	}
}

// A server is held up after it has read that a worker is lost. Meanwhile the
// worker has come back, and runs the same task again: nothing changes.
func TestLateVerdict(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	ids := openMany(t, sp, 1)
	register(t, sp.Store, "w", 1)
	sp.SetClock(t, at(5))
	lost, err := s.store.Lost(t.Context(), 100, fleet.Watched{})
	if err != nil || len(lost.Workers) != 1 || len(lost.Workers[0].Tasks) != 1 {
		t.Fatalf("lost: %+v, %v", lost, err)
	}
	commits := s.decide(t.Context(), heldBy(lost), statemachine.Lose, nobody, nil)

	comesBack(t, sp, "w")
	checkFields(t, sp, ids[0], map[string]string{"losses": "1", "round": "1", "1:running": "*"})
	before := sp.Task(t, ids[0]).Fields["rev"]
	moved, gone, err := s.applyAll(t.Context(), commits)
	if moved != 0 || gone != 0 || err != nil {
		t.Errorf("moved %d, gone %d, %v", moved, gone, err)
	}
	checkState(t, sp, ids[0], statemachine.Running)
	checkFields(t, sp, ids[0], map[string]string{"losses": "1", "round": "1", "rev": before})
}

// comesBack registers a name that holds one task of an earlier incarnation: it
// loses it first, and then claims it.
func comesBack(t *testing.T, sp *storetest.Space, name string) {
	t.Helper()
	reg, err := sp.Store.Register(t.Context(), registration(name, "successor"))
	if err != nil || len(reg.Former) != 1 {
		t.Fatalf("register: %+v, %v", reg, err)
	}
	m, err := statemachine.Decide(&reg.Former[0].Task, statemachine.Occurrence{
		Event: statemachine.Lose, Actor: statemachine.Worker,
	}, reg.Now)
	if err != nil {
		t.Fatal(err)
	}
	out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: m, Writer: name, Bucket: reg.Former[0].Bucket})
	if err != nil || out[0].Result != statemachine.Moved {
		t.Fatalf("move: %+v, %v", out, err)
	}
	register(t, sp.Store, name, 1)
}
