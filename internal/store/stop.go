package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/statemachine"
)

// AskStop marks tasks as to be stopped, as decided by moves with AskStop, and
// calls the workers that run them, which find them in [Renewal].Stops. The
// outcomes are as those of [Store.Apply].
func (s *Store) AskStop(ctx context.Context, orders ...Order) ([]Outcome, error) {
	if len(orders) == 0 {
		return nil, nil
	}
	if len(orders) > MaxMoves {
		return nil, fmt.Errorf("stop: %d tasks in one call: want at most %d", len(orders), MaxMoves)
	}
	k := s.keys
	keys, args := []string{k.meta()}, []any{len(orders), k.stop(""), k.callPrefix()}
	for i := range orders {
		o := &orders[i]
		if !o.AskStop {
			return nil, fmt.Errorf("stop: task %d: the move goes to %s, it asks for no stop", o.ID, o.To)
		}
		keys = append(keys, k.task(o.ID))
		args = append(args, o.ID, string(o.From), o.Round, o.Rev, flag(o.From == statemachine.Running), len(o.Lines))
		for _, l := range o.Lines {
			args = append(args, formatLine(l, o.Writer))
		}
		args = append(args, len(o.Fields))
		for _, text := range o.Fields {
			args = append(args, text)
		}
	}
	r, err := s.runList(ctx, "stop", keys, args...)
	if err != nil {
		return nil, err
	}
	out := make([]Outcome, len(orders))
	for i := range orders {
		out[i] = moveOutcome(orders[i].ID, r.number(i))
	}
	return out, nil
}

// TellOverdue tells the workers of rounds that their time is over, which they find in
// [Renewal].Overdue. It changes no task. Told again, a worker hears it again.
func (s *Store) TellOverdue(ctx context.Context, rounds ...*Seen) error {
	for part := range slices.Chunk(rounds, MaxMoves) {
		keys, args := []string{s.keys.meta()}, []any{len(part), s.keys.stop(""), s.keys.callPrefix()}
		for _, t := range part {
			keys = append(keys, s.keys.task(t.ID))
			args = append(args, t.ID, string(t.State), t.Round, t.Rev, "d", 0, 0)
		}
		if _, err := s.run(ctx, "stop", keys, args...); err != nil {
			return err
		}
	}
	return nil
}
