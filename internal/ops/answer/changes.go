package answer

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// ChangesWanted says which entries of the log of changes are wanted: those that fit all of it.
type ChangesWanted struct {
	// By is who made the change, On what it was made to ([task.ChangeEntry.Concerns]), Since a moment, or how long ago, such as 12h.
	By, On, Since string
	// Before is the number of an entry, 0 for the end; Most how many are wanted.
	Before int64
	Most   int
}

// ChangeLog reads those entries, the newest first. more says that there are others.
func ChangeLog(ctx context.Context, m *manager.Manager, w *ChangesWanted) (found []task.ChangeEntry, more bool, err error) {
	since, err := w.since(ctx, m)
	found = []task.ChangeEntry{}
	if err != nil {
		return found, false, err
	}
	for e, err := range m.Changes(ctx, w.Before) {
		switch {
		case err != nil:
			return found, false, err
		case !e.Damaged && e.At.Before(since):
			return found, false, nil
		case w.By != "" && e.By != w.By, w.On != "" && !e.Concerns(w.On):
			continue
		case len(found) == w.Most:
			return found, true, nil
		}
		found = append(found, e)
	}
	return found, false, nil
}

func (w *ChangesWanted) since(ctx context.Context, m *manager.Manager) (time.Time, error) {
	if w.Since == "" {
		return time.Time{}, nil
	}
	now, err := m.Now(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if ago, ok := config.Age(w.Since); ok {
		return now.Add(-ago), nil
	}
	at, err := momentOf("since", w.Since, now)
	if err != nil || at.IsZero() {
		const want = "a time such as 2026-11-21T08:00:00Z, or how long ago, such as 12h or 7d"
		err = &statemachine.FieldError{Field: "since", Value: w.Since, Want: want}
	}
	return at, err
}
