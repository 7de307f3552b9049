package store_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

func isHandlingLost(err error) bool { return errors.Is(err, conn.ErrHandlingLost) }

// take asks for tasks 1 to 3.
func take(t *testing.T, sp *storetest.Space, instance string) map[int64]int64 {
	t.Helper()
	granted, _ := takeCall(instance, []int64{1, 2, 3}, nil)(t, sp.Store).must(t).(map[int64]int64)
	return granted
}

// others is what the manager j sees of others, by a clock of its own.
type others struct {
	fleet.HandlingWatch
	own time.Time
}

func watching() *others {
	o := &others{own: time.Now()}
	o.Now = func() time.Time { return o.own }
	return o
}

// keep lets time pass on j's own clock, and renews its lease.
func (o *others) keep(t *testing.T, sp *storetest.Space, d time.Duration) {
	t.Helper()
	o.own = o.own.Add(d)
	if err := sp.Store.KeepHandling(t.Context(), handlingOf("j"), &o.HandlingWatch); err != nil {
		t.Fatal(err)
	}
}

// TestHandling: a task is one living manager's; of one that was watched to be silent
// everything is another's, and its own decision to archive is refused.
func TestHandling(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	handled(t, sp)
	before := sp.Task(t, 1)
	beginHandlingCall("j")(t, sp.Store).must(t)
	if got := take(t, sp, "j"); len(got) != 0 {
		t.Errorf("granted %v beside a living manager", got)
	}
	o, archivist := watching(), watching()
	o.keep(t, sp, 0)
	archivist.isHandled(t, sp, true)
	sp.SetClock(t, noon.Add(5*second))
	keepCall("i")(t, sp.Store).must(t)
	o.keep(t, sp, 15*time.Second) // i has renewed its lease just before it is over, and is watched from now on
	archivist.own = o.own
	archivist.isHandled(t, sp, true)
	o.keep(t, sp, 14*time.Second)
	if got := take(t, sp, "j"); len(got) != 0 {
		t.Errorf("granted %v before the lease is over", got)
	}
	if next := o.Next(5 * time.Second); next != time.Second {
		t.Errorf("looks again in %v, want when the lease is over", next)
	}
	archivist.own = archivist.own.Add(15 * time.Second)
	archivist.isHandled(t, sp, false)
	o.keep(t, sp, time.Second)
	late := clerkCall(statemachine.Manager, statemachine.Archive)(t, sp.Store)
	if got := take(t, sp, "j"); !maps.Equal(got, map[int64]int64{1: before.Rev + 1}) {
		t.Errorf("granted %v, want task 1 with revision %d", got, before.Rev+1)
	}
	if _, err := late(); !errors.Is(err, statemachine.ErrConflict) {
		t.Errorf("the former holder archives: %v, want a conflict", err)
	}
	if _, err := keepCall("i")(t, sp.Store)(); !isHandlingLost(err) {
		t.Errorf("the former holder renews: %v", err)
	}
	if _, err := sp.Store.TakeHandling(t.Context(), handlingOf("i"), statemachine.Succeeded, nil, []int64{1}); !isHandlingLost(err) {
		t.Errorf("the former holder takes: %v", err)
	}
	clerkCall(statemachine.Manager, statemachine.Archive)(t, sp.Store).must(t)
	if got := take(t, sp, "j"); len(got) != 0 {
		t.Errorf("granted %v in the archive", got)
	}
}

// isHandled looks as a manager without handlers does.
func (o *others) isHandled(t *testing.T, sp *storetest.Space, want bool) {
	t.Helper()
	got, err := sp.Store.Handled(t.Context(), &o.HandlingWatch, 15*time.Second, []int64{1, 2})
	if err != nil || got[1] != want || got[2] {
		t.Errorf("handled: %v, %v, want task 1: %v", got, err, want)
	}
}

// TestHandlingClockSteps: no step of the clock of Redis ends the lease of a manager, or
// makes that of a dead one last longer.
func TestHandlingClockSteps(t *testing.T) {
	t.Parallel()
	bothClocks(t, func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		sp.StepClock(t, noon)
		handled(t, sp)
		beginHandlingCall("j")(t, sp.Store).must(t)
		o := watching()
		for _, step := range []statemachine.Duration{3600 * second, -3600 * second} {
			o.keep(t, sp, 0)
			sp.StepClock(t, noon.Add(step))
			o.keep(t, sp, 10*time.Second)
			if got := take(t, sp, "j"); len(got) != 0 {
				t.Errorf("granted %v after a step of %s s beside a living manager", got, step.Text())
			}
			o.isHandled(t, sp, true)
			sp.StepClock(t, noon.Add(step+10*second))
			keepCall("i", 1)(t, sp.Store).must(t)
		}
		o.keep(t, sp, 0)
		o.keep(t, sp, 15*time.Second)
		if got := take(t, sp, "j"); len(got) != 1 {
			t.Errorf("granted %v of a manager that was silent for its lease, want its task", got)
		}
	})
}

// TestHandlingLength: a manager watches another's lease for as long as that one lasts,
// not its own.
func TestHandlingLength(t *testing.T) {
	t.Parallel()
	for _, length := range []time.Duration{1500 * time.Millisecond, 40 * time.Second} {
		sp, o := storetest.New(t), watching()
		if err := sp.Store.BeginHandling(t.Context(), fleet.NewHandling(length), &fleet.HandlingWatch{}); err != nil {
			t.Fatal(err)
		}
		beginHandlingCall("j")(t, sp.Store).must(t)
		o.keep(t, sp, 0)
		o.keep(t, sp, length-time.Millisecond)
		if left := sp.Raw.HLen(t.Context(), sp.Key("handling")).Val(); left != 2 {
			t.Errorf("a lease of %v is over too early", length)
		}
		o.keep(t, sp, time.Millisecond)
		if left := sp.Raw.HLen(t.Context(), sp.Key("handling")).Val(); left != 1 {
			t.Errorf("a lease of %v is not over in time", length)
		}
	}
}

// TestHandlingOutage: a lease counts on after Redis was away for longer, as long as
// nobody ended it.
func TestHandlingOutage(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	handled(t, sp)
	sp.SetClock(t, noon.Add(40*second))
	keepCall("i", 1)(t, sp.Store).must(t)
	if got := take(t, sp, "i"); len(got) != 1 {
		t.Errorf("granted %v, want task 1 again", got)
	}
}

// TestHandlingLeavesNothing: what managers handled is gone with their leases.
func TestHandlingLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*testing.T, *storetest.Space){
		"ended":    func(t *testing.T, sp *storetest.Space) { t.Helper(); endHandlingCall(t, sp.Store).must(t) },
		"replaced": func(t *testing.T, sp *storetest.Space) { t.Helper(); beginHandlingCall("j", "i")(t, sp.Store).must(t) },
		"silent": func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			beginHandlingCall("j")(t, sp.Store).must(t)
			sweepCall(t, sp.Store).must(t)
		},
		"not mine": func(t *testing.T, sp *storetest.Space) { t.Helper(); lostHandlingCall(t, sp.Store).must(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			sp.SetClock(t, noon)
			handled(t, sp)
			leave(t, sp)
			left := sp.Raw.HGetAll(t.Context(), sp.Key("handling")).Val()
			delete(left, "@j")
			if len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestHandlingLimit(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	_, err := sp.Store.TakeHandling(t.Context(), fleet.Handling{Instance: "i", Lease: time.Second}, statemachine.Succeeded, nil, make([]int64, 1001))
	if err == nil || isHandlingLost(err) {
		t.Errorf("1001 tasks in one call: %v", err)
	}
}
