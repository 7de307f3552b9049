package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Note appends lines to the log of a task that worker holds, at once. It
// returns an error matching statemachine.ErrStale if the round is over.
func (s *Store) Note(ctx context.Context, worker string, t *statemachine.Task, lines ...Line) error {
	if len(lines) == 0 {
		return nil
	}
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = formatLine(l, worker)
	}
	return s.note(ctx, t, strings.Join(texts, "\n"), "", "")
}

func (s *Store) note(ctx context.Context, t *statemachine.Task, lines, field, value string) error {
	v, err := s.run(ctx, "note", []string{s.keys.meta(), s.keys.task(t.ID)},
		string(statemachine.Running), t.Round, t.Current.Claim, lines, field, value)
	if err != nil {
		return err
	}
	if v == int64(-1) {
		return staleRound(t)
	}
	return nil
}

func staleRound(t *statemachine.Task) error {
	return fmt.Errorf("task %d, round %d: %w", t.ID, t.Round, statemachine.ErrStale)
}

func formatLine(l Line, name string) string {
	at := time.UnixMicro(int64(l.At)).UTC().Format(time.DateTime)
	return at + " - " + writer(name) + " " + l.Text
}
