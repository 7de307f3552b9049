package manager

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// mostRunning bounds how many running tasks are asked for their progress: it is
// for people to watch.
const mostRunning = 20

// runs notes a task that may have progress to tell.
func (w *waiter) runs(id int64, state statemachine.State, round string) {
	if state != statemachine.Running || len(w.rounds) >= mostRunning {
		return
	}
	if n, err := strconv.Atoi(round); err == nil {
		w.rounds[id] = n
	}
}

// readProgress asks those tasks; it reports whether they say something new.
func (w *waiter) readProgress(ctx context.Context) (changed bool, err error) {
	before := w.running
	w.running = nil
	if len(w.rounds) == 0 {
		return len(before) > 0, nil
	}
	var ids []int64
	var names []string
	for id, round := range w.rounds {
		ids, names = append(ids, id), append(names, statemachine.RoundField(round, "progress"))
	}
	found, err := w.m.store.Fields(ctx, ids, names...)
	if err != nil {
		w.running = before
		return false, err
	}
	for i, id := range ids {
		if text := found[i][names[i]]; text != "" {
			w.running = append(w.running, RunningTask{ID: id, Progress: ParseProgress(text)})
		}
	}
	slices.SortFunc(w.running, func(a, b RunningTask) int { return cmp.Compare(a.ID, b.ID) })
	return !slices.Equal(before, w.running), nil
}

// blocks notes the plan of a blocked task. A plan that was ready once is not looked at again.
func (w *waiter) blocks(state statemachine.State, plan string) {
	id := number(plan)
	if _, known := w.plans[id]; state == statemachine.Blocked && id > 0 && !known && len(w.plans) < mostPlans {
		w.plans[id] = true
	}
}

// mostPlans bounds how many plans are looked at.
const mostPlans = 100

// readPlans looks which of those plans are half built; it reports whether that has changed.
func (w *waiter) readPlans(ctx context.Context) (changed bool, err error) {
	before := w.notReady
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(w.plans)), func(id int64) bool { return !w.plans[id] })
	if len(ids) == 0 {
		w.notReady = nil
		return len(before) > 0, nil
	}
	plans, err := w.m.store.PlansOf(ctx, ids)
	if err != nil {
		return false, err
	}
	now, err := w.m.store.Now(ctx)
	if err != nil {
		return false, err
	}
	w.notReady = nil
	for _, id := range ids {
		i := slices.IndexFunc(plans, func(p store.Plan) bool { return p.ID == id })
		w.plans[id] = i >= 0 && plans[i].State == store.PlanBuilding
		if w.plans[id] && plans[i].HalfBuilt(now) {
			w.notReady = append(w.notReady, id)
		}
	}
	return !slices.Equal(before, w.notReady), nil
}
