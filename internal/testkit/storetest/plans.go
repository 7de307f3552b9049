package storetest

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/statemachine"
)

// DrainPlans does what one pass of a server does for plans, in pages of so many, and
// reports whether there was anything to do. Without move the tasks that may run stay where they are.
func DrainPlans(tb testing.TB, st *store.Store, page int, move bool) bool {
	tb.Helper()
	drains, err := st.Draining(tb.Context(), 0, 100)
	if err != nil {
		tb.Fatal(err)
	}
	for _, d := range drains {
		if d.Growth > 0 {
			if _, _, err := growth.Pass(tb.Context(), st, d.Growth, page); err != nil {
				tb.Fatal(err)
			}
		} else if d.Plan > 0 {
			moveFreed(tb, st, d.Plan, page, move)
		} else if _, err := st.Release(tb.Context(), page, d.Task); err != nil {
			tb.Fatal(err)
		}
	}
	return len(drains) > 0
}

func moveFreed(tb testing.TB, st *store.Store, plan int64, page int, move bool) {
	tb.Helper()
	freed, now, err := st.FreedTasks(tb.Context(), plan, 0, page)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range freed {
		t := &freed[i]
		m, err := statemachine.Decide(&t.Task, statemachine.Occurrence{Event: t.Event(), Actor: statemachine.Server}, now)
		if err != nil {
			tb.Fatal(err)
		}
		if !move {
			continue
		}
		if out, err := st.Apply(tb.Context(), store.Order{Move: m, Writer: "server", Bucket: t.Bucket}); err != nil || out[0].Err != nil {
			tb.Fatalf("%+v, error %v", out, err)
		}
	}
}
