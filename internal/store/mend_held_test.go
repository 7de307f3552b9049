package store_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// heldLosses are the scenarios of repairs that take a task from its worker;
// they join scriptLosses.
var heldLosses = map[string]map[string]loss{
	"repair": {
		"held, executed":  {prepare: executedInHash, call: relistCall(statemachine.Executed)},
		"held, set aside": {prepare: damagedHeld, call: setAsideCall},
	},
	"index": {"held": {prepare: executedElsewhere, call: reindexCall, hint: true}},
}

// executedInHash runs under a session of w, but the hash says that it is over.
func executedInHash(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sessionClaimed(t, sp)
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "state", "executed", "0:executed", noon.Text())
}

// executedElsewhere was taken from the session of w by a client that knows no
// set of held tasks.
func executedElsewhere(t *testing.T, sp *storetest.Space) {
	t.Helper()
	executedInHash(t, sp)
	sp.Raw.ZRem(t.Context(), sp.Key("running"), "1")
	sp.Raw.ZAdd(t.Context(), sp.Key("executed"), redis.Z{Score: 1, Member: "1"})
}

func damagedHeld(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sessionClaimed(t, sp)
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "fails", "many")
}

// TestMendTakesFromHeld: what a repair finds not to run is held by nobody.
func TestMendTakesFromHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*testing.T, *storetest.Space)
		call    func(*testing.T, *store.Store) step
		held    bool
	}{
		"relist":            {executedInHash, relistCall(statemachine.Executed), false},
		"set aside":         {damagedHeld, setAsideCall, false},
		"reindex":           {executedElsewhere, reindexCall, false},
		"relist as running": {runningInNoSet, relistCall(statemachine.Running), true},
		"reindex a running": {unwatched, reindexCall, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			sp.SetClock(t, noon)
			c.prepare(t, sp)
			if changed := c.call(t, sp.Store).must(t); changed != true {
				t.Error("nothing was changed")
			}
			if held := sp.Raw.SIsMember(t.Context(), sp.Key("held:w"), "1").Val(); held != c.held {
				t.Errorf("held: %v, want %v", held, c.held)
			}
		})
	}
}

func runningInNoSet(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sessionClaimed(t, sp)
	sp.Raw.ZRem(t.Context(), sp.Key("running"), "1")
}

// TestReindexOnlyHeld: also an entry that is the only thing wrong counts.
func TestReindexOnlyHeld(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	executedElsewhere(t, sp)
	reindexCall(t, sp.Store).must(t)
	sp.Raw.SAdd(t.Context(), sp.Key("held:w"), "1")
	for _, want := range []bool{true, false} {
		if changed := reindexCall(t, sp.Store).must(t); changed != want {
			t.Errorf("changed: %v, want %v", changed, want)
		}
	}
}
