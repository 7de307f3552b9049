package manager

import (
	"cmp"
	"context"
	"slices"
	"strconv"

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
