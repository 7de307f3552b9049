package store_test

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// handlingLosses are the scenarios of the lease under which tasks are handled;
// they join scriptLosses.
var handlingLosses = map[string]map[string]loss{
	"handle": {
		"take":      {prepare: handlerBegun, call: takeCall("i", []int64{1}, nil)},
		"held":      {prepare: handled, call: takeCall("i", []int64{1}, nil)},
		"take over": {prepare: handlerGone, call: takeCall("j", []int64{1}, nil)},
		"another's": {prepare: handledBeside, call: takeCall("j", []int64{1}, nil)},
		"give back": {prepare: handled, call: takeCall("i", nil, []int64{1, 7})},
	},
	"keep": {
		"begin":    {prepare: succeeded, call: beginHandlingCall("i")},
		"replace":  {prepare: handled, call: beginHandlingCall("j", "i")},
		"renew":    {prepare: handled, call: keepCall("i", 1)},
		"end":      {prepare: handled, call: endHandlingCall},
		"sweep":    {prepare: handledBeside, call: sweepCall},
		"not mine": {prepare: handled, call: lostHandlingCall},
	},
}

// handlingOf is the lease of the tests' managers.
func handlingOf(instance string) fleet.Handling {
	return fleet.Handling{Instance: instance, Lease: 15 * time.Second}
}

func beginHandlingCall(instance string, replaces ...string) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return done(func() error {
			return st.BeginHandling(t.Context(), handlingOf(instance), &fleet.HandlingWatch{}, replaces...)
		})
	}
}

func keepCall(instance string, ids ...int64) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return done(func() error {
			return st.KeepHandling(t.Context(), handlingOf(instance), &fleet.HandlingWatch{}, ids...)
		})
	}
}

func endHandlingCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.EndHandling(t.Context(), handlingOf("i")) })
}

// lostHandlingCall renews the lease of i, which believes to have task 7.
func lostHandlingCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) {
		err := st.KeepHandling(t.Context(), handlingOf("i"), &fleet.HandlingWatch{}, 7)
		if isHandlingLost(err) {
			return "lost", nil
		}
		return "kept", err
	}
}

func takeCall(instance string, take, back []int64) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return func() (any, error) {
			return st.TakeHandling(t.Context(), handlingOf(instance), statemachine.Succeeded, back, take)
		}
	}
}

// handlerBegun has task 1, which has succeeded, and the manager i.
func handlerBegun(t *testing.T, sp *storetest.Space) {
	t.Helper()
	succeeded(t, sp)
	beginHandlingCall("i")(t, sp.Store).must(t)
}

// handled is task 1 with the handlers of i.
func handled(t *testing.T, sp *storetest.Space) {
	t.Helper()
	handlerBegun(t, sp)
	takeCall("i", []int64{1}, nil)(t, sp.Store).must(t)
}

// handledBeside has the manager j as well.
func handledBeside(t *testing.T, sp *storetest.Space) {
	t.Helper()
	handled(t, sp)
	beginHandlingCall("j")(t, sp.Store).must(t)
}

// handlerGone leaves task 1 with i, whose lease is over.
func handlerGone(t *testing.T, sp *storetest.Space) {
	t.Helper()
	handledBeside(t, sp)
	sp.Raw.HDel(t.Context(), sp.Key("handling"), "@i")
}

// sweepCall renews the lease of j, which has watched that of i for all of it.
func sweepCall(t *testing.T, st *store.Store) step {
	t.Helper()
	own := time.Now()
	w := &fleet.HandlingWatch{Now: func() time.Time { return own }}
	if err := st.KeepHandling(t.Context(), handlingOf("j"), w); err != nil {
		t.Fatal(err)
	}
	own = own.Add(handlingOf("i").Lease)
	return done(func() error { return st.KeepHandling(t.Context(), handlingOf("j"), w) })
}
