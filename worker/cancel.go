package worker

import (
	"slices"

	"github.com/tdf-go/tdf/statemachine"
)

// cancel stops the rounds of tasks that somebody has cancelled. The ids are
// kept for rounds whose claim was not answered yet. Told again, it changes
// nothing: the grace of a program goes on.
func (w *Worker) cancel(tasks []int64) {
	w.stops.Store(&tasks)
	for _, s := range w.slots {
		if r := s.current(); r != nil && w.cancelled(r) {
			s.stopRound(r, errCancelled)
		}
	}
}

// cancelled reports whether the task of a round is to be stopped. A cancelled
// task is never opened again, so its id is enough.
func (w *Worker) cancelled(r *round) bool { return slices.Contains(*w.stops.Load(), r.task.ID) }

// endOverdue stops the rounds that servers find overdue and leave to their worker, as
// far as that is true at the time now of Redis: how long a round has run it knows better
// than Redis, whose clock may have jumped.
func (w *Worker) endOverdue(tasks []int64, now statemachine.Time) {
	for _, s := range w.slots {
		r := s.current()
		switch {
		case r == nil || !slices.Contains(tasks, r.task.ID):
		case r.clock.now() > r.task.RoundEnd(0):
			s.stopRound(r, errOverdue)
		case now > r.task.EndBefore:
			s.stopRound(r, errEndBefore)
		default:
			r.log.Debug().Msgf("the time of task %d is not over by the clock of this host", r.task.ID)
		}
	}
}

// stopRound ends a round with TERM, grace and KILL if it is still under way.
func (s *slot) stopRound(r *round, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.round != r {
		return
	}
	if !r.stopping.Swap(true) {
		r.log.Info().Err(cause).Msgf("stopping task %d", r.task.ID)
	}
	s.cancel(cause)
}
