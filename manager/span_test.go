package manager

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// afterEpochs has 40 epochs behind it, which left out a million ids each and before
// them lost one that was given out. ids are the tasks: one before each epoch and one
// after them all, and the last of the lost, written all the same.
func afterEpochs(t *testing.T) (m *Manager, ids []int64) {
	t.Helper()
	sp := storetest.New(t)
	open := func() int64 { return sp.Open(t, storetest.Spec())[0] }
	const epochs = 40
	for n := range epochs {
		from := open()
		ids = append(ids, from)
		if n == epochs-1 {
			ids = append(ids, open())
		}
		to := from + 1 + 1_000_000
		sp.Raw.HSet(t.Context(), sp.Key("epochs"), n+2, fmt.Sprintf("1.000000 %d 9 1 %d %d", n+1, from, to))
		sp.Raw.Set(t.Context(), sp.Key("task_id"), to, 0)
	}
	return newManager(t, sp.Namespace), append(ids, open())
}

// What epochs left out is not read: it is millions of ids.
func TestEpochsArePassedOver(t *testing.T) {
	t.Parallel()
	m, want := afterEpochs(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	w := m.newWaiter()
	ids, err := w.everything(ctx)
	if err == nil {
		err = w.begin(ctx, ids)
	}
	if err != nil || !slices.Equal(w.open, want) {
		t.Errorf("waits for %v, %v, want %v", w.open, err, want)
	}
	var got []int64
	s := m.selector(&Selection{All: true}, func(page []*task.Task) bool { got = append(got, idsOf(page)...); return true })
	s.held = 1
	if err := s.all(ctx); err != nil || !slices.Equal(got, want) {
		t.Errorf("selected %v, %v, want %v", got, err, want)
	}
}

// Ids that were asked for by number are looked at, whether an epoch left them out or not.
func TestSelectLeftOut(t *testing.T) {
	t.Parallel()
	m, ids := afterEpochs(t)
	gone := ids[0] + 1
	found := storetest.All(t, m.Select(t.Context(), Selection{IDs: []IDRange{{gone, gone + 2}}}))
	if got := idsOf(found); !slices.Equal(got, []int64{gone, gone + 1, gone + 2}) || found[1].State != statemachine.None {
		t.Errorf("selected %+v", found)
	}
}
