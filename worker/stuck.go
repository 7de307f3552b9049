package worker

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
)

// unstickInterval is how often it is tried to get a stuck slot back.
const unstickInterval = 5 * time.Second

// stick takes a slot out of service whose round does not end, visibly, and
// brings it back when that has ended after all. The round keeps its private
// directory until then: what still runs could write to it and mount there.
func (w *Worker) stick(s *slot, r *round, ended func(ctx context.Context) bool) {
	w.log.Error().Int("slot", s.index).Msg("the slot is stuck: what ran in it does not end; it takes no task until it does")
	w.pool.set(s, stuck)
	w.signalChange()
	w.background.Go(func() {
		for !ended(w.life) {
			if w.life.Err() != nil {
				return
			}
		}
		r.removePrivate()
		w.log.Warn().Int("slot", s.index).Msg("the slot is free again")
		w.pool.set(s, idle)
		w.signalChange()
	})
}

// unkillable waits for a program that survives KILL, usually because it hangs
// in the kernel.
func (s *slot) unkillable(ctx context.Context) bool {
	timing.Pause(ctx, unstickInterval)
	return s.discard() == nil
}
