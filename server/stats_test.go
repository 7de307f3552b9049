package server

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// The metrics of a server count its moves, and tell passes that succeed from those that fail.
func TestStats(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	s, l := launch(t, sp, fast)
	sp.Open(t, storetest.Spec(), storetest.Spec())
	run(t, sp, "")
	awaitState(t, sp, 1, sm.Succeeded, time.Minute)
	now := s.Stats()
	wait.Eventually(t, time.Minute, func() bool { now = s.Stats(); return now.Moves[Move{sm.Settle, sm.Succeeded}] == 1 && now.Passes > 0 },
		"the move is not counted: %s", l)
	if now.Err != nil || now.Progress.IsZero() || now.Active.Before(now.Progress) || now.Repairs != 0 {
		t.Errorf("%+v", now)
	}
	sp.Server.Pause(t)
	wait.Eventually(t, time.Minute, func() bool { return s.Stats().Err != nil }, "no pass fails without Redis")
	first := s.Stats()
	wait.Eventually(t, time.Minute, func() bool { return s.Stats().Active.After(first.Active) }, "no pass ends without Redis")
	if later := s.Stats(); !later.Progress.Equal(first.Progress) || later.Passes != first.Passes {
		t.Errorf("passes succeeded without Redis: %+v, then %+v", first, later)
	}
	sp.Server.Resume(t)
	wait.Eventually(t, time.Minute, func() bool { is := s.Stats(); return is.Err == nil && is.Progress.After(first.Progress) }, "no pass succeeds again")
}

// A pass that takes long makes progress with each of its calls.
func TestStatsOfALongPass(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	sp.Open(t, storetest.Spec())
	run(t, sp, "")
	if n, err := s.settleExecuted(t.Context()); n != 1 || err != nil {
		t.Fatalf("settled %d, %v", n, err)
	}
	if now := s.Stats(); now.Progress.IsZero() || now.Active.IsZero() || now.Passes != 0 {
		t.Errorf("%+v", now)
	}
}
