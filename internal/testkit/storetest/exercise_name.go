package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// exerciseTaken lets another process come for the name a. The clock alone frees
// no name: Redis may have been away, and the holder alive all the time.
func (sp *Space) exerciseTaken(t *testing.T, a store.Session) {
	t.Helper()
	sp.SetClock(t, noon.Add(15*second))
	other := Registration("a")
	other.Identity = "another process"
	_, err := sp.Store.Register(t.Context(), other)
	var taken *store.NameTakenError
	if !errors.As(err, &taken) || !errors.Is(err, store.ErrNameTaken) || taken.Silent != 15*second || taken.Holder.PID != 42 {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{`"a"`, "process 42", "host.example", "node-1", "15s ago", "stop it, give this worker another name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	sp.SetClock(t, noon.Add(60*second))
	other.Replaces = a.Incarnation + 1
	_, err = sp.Store.Register(t.Context(), other)
	if !errors.As(err, &taken) || taken.Silent != 60*second || taken.Lease != 15*second || taken.Holder.Incarnation != a.Incarnation {
		t.Errorf("after a minute of silence: %v", err)
	}
	if again := sp.Register(t, "a"); again != a {
		t.Errorf("the same process registers again as %+v, was %+v", again, a)
	}
	sp.exerciseFreed(t, a, other)
}

// exerciseFreed goes on with a server's verdict on a, which frees the name.
func (sp *Space) exerciseFreed(t *testing.T, a store.Session, other store.Registration) {
	t.Helper()
	sp.lost(t)
	next, err := sp.Store.Register(t.Context(), other)
	if err != nil || next.ID != 1 || next.Incarnation != 2 {
		t.Errorf("after the verdict: %+v, error %v", next, err)
	}
	if _, err := sp.Store.Renew(t.Context(), a, store.Heartbeat{}); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the former session renews: %v", err)
	}
	sp.Raw.ZRem(t.Context(), sp.Key("lease"), "a") // by hand
	other.Identity = "a third process"
	if next, err = sp.Store.Register(t.Context(), other); err != nil || next.Incarnation != 3 {
		t.Errorf("without an entry in the list of leases: %+v, error %v", next, err)
	}
}

// A worker that holds tasks keeps its name and them through an outage of Redis,
// however long that was by the clock, whoever comes for the name.
func exerciseTakenHolding(t *testing.T, sp *Space) {
	sp.SetClock(t, noon)
	w := sp.Register(t, "w")
	sp.Open(t, Spec())
	task := sp.ClaimUnder(t, w, 1)[0]
	sp.SetClock(t, noon.Add(60*second))
	other := Registration("w")
	other.Identity = "on another host"
	if r, err := sp.Store.Register(t.Context(), other); !errors.Is(err, store.ErrNameTaken) || len(r.Former) != 0 {
		t.Errorf("registered %+v, error %v, want the name to be taken", r, err)
	}
	sp.Renew(t, w)
	if out := sp.Report(t, &task, "done", ""); out.Result != statemachine.Moved {
		t.Errorf("report: %+v", out)
	}
	if err := sp.Store.Leave(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	sp.Raw.ZAdd(t.Context(), sp.Key("lease"), redis.Z{Score: 1, Member: "w"}) // by hand
	if r, err := sp.Store.Register(t.Context(), other); err != nil || r.Incarnation != 2 {
		t.Errorf("after it has left: %+v, error %v", r, err)
	}
}
