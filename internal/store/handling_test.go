package store_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

func isHandlingLost(err error) bool { return errors.Is(err, store.ErrHandlingLost) }

// take asks for tasks 1 to 3.
func take(t *testing.T, sp *storetest.Space, instance string) map[int64]int64 {
	t.Helper()
	granted, _ := takeCall(instance, []int64{1, 2, 3}, nil)(t, sp.Store).must(t).(map[int64]int64)
	return granted
}

// TestHandling: a task is one living manager's; of a silent one everything is
// another's at once, and its own decision to archive is refused.
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
	sp.SetClock(t, noon.Add(14*second))
	keepCall("j")(t, sp.Store).must(t)
	isHandled(t, sp, noon.Add(14*second), true)
	sp.SetClock(t, noon.Add(16*second))
	isHandled(t, sp, noon.Add(16*second), false)
	late := clerkCall(statemachine.Manager, statemachine.Archive)(t, sp.Store)
	if got := take(t, sp, "j"); !maps.Equal(got, map[int64]int64{1: before.Rev + 1}) {
		t.Errorf("granted %v, want task 1 with revision %d", got, before.Rev+1)
	}
	if _, err := late(); !errors.Is(err, statemachine.ErrConflict) {
		t.Errorf("the former holder archives: %v, want a conflict", err)
	}
	if err := sp.Store.KeepHandling(t.Context(), handlingOf("i")); !isHandlingLost(err) {
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

func isHandled(t *testing.T, sp *storetest.Space, at statemachine.Time, want bool) {
	t.Helper()
	got, err := sp.Store.Handled(t.Context(), []int64{1, 2}, at)
	if err != nil || got[1] != want || got[2] {
		t.Errorf("handled: %v, %v, want task 1: %v", got, err, want)
	}
}

// TestHandlingOutage: a lease counts on after it ran out while Redis was away,
// as long as nobody took anything.
func TestHandlingOutage(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	handled(t, sp)
	sp.SetClock(t, noon.Add(40*second))
	if _, err := sp.Store.TakeHandling(t.Context(), handlingOf("i"), statemachine.Succeeded, nil, []int64{1}); !isHandlingLost(err) {
		t.Errorf("took with a lease that is over: %v", err)
	}
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
			sp.SetClock(t, noon.Add(16*second))
			beginHandlingCall("j")(t, sp.Store).must(t)
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
	_, err := sp.Store.TakeHandling(t.Context(), store.Handling{Instance: "i", Lease: time.Second}, statemachine.Succeeded, nil, make([]int64, 1001))
	if err == nil || isHandlingLost(err) {
		t.Errorf("1001 tasks in one call: %v", err)
	}
}
