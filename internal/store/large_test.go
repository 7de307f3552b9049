package store_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// large is more than a script can pass to one command (about 8,000).
const large = 9000

func largeIDs() []string {
	ids := make([]string, large)
	for i := range ids {
		ids[i] = strconv.Itoa(100 + i)
	}
	return ids
}

// TestRenewManyOver: a heartbeat does not break on what readers leave behind,
// and clears it away little by little.
func TestRenewManyOver(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	w := sp.Register(t, "w")
	id := sp.Open(t, storetest.Spec())[0]
	sp.ClaimUnder(t, w, 1)
	if err := sp.Store.Follow(t.Context(), id, time.Minute, true); err != nil {
		t.Fatal(err)
	}
	var over []any
	for _, id := range largeIDs() {
		over = append(over, id, "1 1")
	}
	sp.Raw.HSet(t.Context(), sp.Key("follow"), over...)
	for left := large - 1000; left >= -1000; left -= 1000 {
		if r := sp.Renew(t, w); len(r.Followed) != 1 || r.Followed[0].ID != id {
			t.Fatalf("followed %v", r.Followed)
		}
		if n := sp.Raw.HLen(t.Context(), sp.Key("follow")).Val(); n != int64(1+max(left, 0)) {
			t.Fatalf("%d entries, want %d", n, 1+max(left, 0))
		}
	}
}

// TestLeaveManyStale: a worker can leave however many ids its set has that it
// does not run.
func TestLeaveManyStale(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	w := sp.Register(t, "w")
	ids := make([]any, 0, large)
	for _, id := range largeIDs() {
		ids = append(ids, id)
	}
	sp.Raw.SAdd(t.Context(), sp.Key("held:w"), ids...)
	if err := sp.Store.Leave(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if n := sp.Raw.SCard(t.Context(), sp.Key("held:w")).Val(); n != 0 {
		t.Errorf("%d ids are left", n)
	}
}

// TestApplyLargeOrders: an order of the largest size is carried out, a larger
// one refused by name before anything happens.
func TestApplyLargeOrders(t *testing.T) {
	t.Parallel()
	values := make([]string, tasks.MaxFields+2)
	for i := range values {
		values[i] = "0:f" + strconv.Itoa(i)
	}
	for name, c := range map[string]struct {
		fields, drop []string
		fits         bool
	}{
		"largest":         {values[:tasks.MaxFields], values[:tasks.MaxFields], true},
		"too many fields": {values, nil, false},
		"too many drops":  {nil, values[:tasks.MaxFields+1], false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			sp.SetClock(t, noon)
			sessionClaimed(t, sp)
			before := dump(t, sp)
			task := sp.Task(t, 1)
			m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{
				Event: statemachine.Report, Actor: statemachine.Worker, Claim: task.Current.Claim,
			}, noon)
			if err != nil {
				t.Fatal(err)
			}
			out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: m, Writer: "w", Fields: c.fields, Drop: c.drop})
			if c.fits {
				if err != nil || out[0].Result != statemachine.Moved {
					t.Errorf("%v, error %v", out, err)
				}
				return
			}
			if !slices.ContainsFunc([]string{"task 1: 4002 field values", "task 1: 4001 fields to drop"}, func(want string) bool {
				return strings.Contains(errText(err), want+" in one commit: want at most 4000")
			}) {
				t.Errorf("error %v", err)
			}
			sameDump(t, before, dump(t, sp), "after an order that was refused")
		})
	}
}
