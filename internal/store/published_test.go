package store_test

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// TestClaimWithUnreadableGrace: Redis does not undo what a script has written
// when it stumbles over a value, so none may make it stumble.
func TestClaimWithUnreadableGrace(t *testing.T) {
	t.Parallel()
	for text, grace := range map[string]float64{
		"soon": tasks.DefaultGrace, "": tasks.DefaultGrace, "nan": tasks.DefaultGrace, "-3": tasks.DefaultGrace,
		"0": 0, "2.5": 2.5,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			sp.SetClock(t, noon)
			sp.Open(t, finite())
			sp.Raw.HSet(t.Context(), sp.Key("meta"), "timeout_grace", text)
			if got := sp.Claim(t, "w", 1); len(got) != 1 {
				t.Fatalf("claimed %+v", got)
			}
			want := float64(noon)/1e6 + 5 + grace
			if due := sp.Raw.ZScore(t.Context(), sp.Key("due"), "1").Val(); due != want {
				t.Errorf("due at %f, want %f", due, want)
			}
		})
	}
}

// TestUnreadableLease: a malformed lease counts as not published, for
// every reader.
func TestUnreadableLease(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]statemachine.Duration{
		"soon": fleet.DefaultLease * second, "": fleet.DefaultLease * second, "nan": fleet.DefaultLease * second,
		"0": fleet.DefaultLease * second, "-3": fleet.DefaultLease * second, "2.5": 2*second + second/2,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			sp.SetClock(t, noon)
			sp.Raw.HSet(t.Context(), sp.Key("meta"), "worker_timeout", text)
			w := sp.Register(t, "w")
			if r := sp.Renew(t, w); w.Lease != want || r.Lease != want {
				t.Errorf("leases %s and %s, want %s", w.Lease.Text(), r.Lease.Text(), want.Text())
			}
			for n, after := range []statemachine.Duration{want - second, want + second} {
				sp.SetClock(t, noon.Add(after))
				if l, err := sp.Store.Lost(t.Context(), 9, fleet.Watched{}); err != nil || len(l.Workers) != n {
					t.Errorf("lost after %s: %+v, error %v", after.Text(), l, err)
				}
			}
		})
	}
}
