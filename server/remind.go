package server

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
)

const (
	// overdue is how late a task is when a server wakes another worker for it: one
	// that was woken, or knew when it starts, has claimed it by then.
	overdue = 100 * statemachine.Millisecond
	// reminderPause is the shortest time between two looks for such tasks.
	reminderPause = 100 * time.Millisecond
)

// remind sees to it that no due task waits for a worker that was woken for it and does
// not come, when that worker is not the only one that waits. It looks each second, and
// when the next task will be late.
func (s *Server) remind(ctx context.Context, _ chan struct{}) {
	for ctx.Err() == nil {
		pause := pollInterval
		if next, err := s.store.Remind(ctx, overdue); err == nil { // the passes say what is wrong with Redis
			pause = max(min(pause, timing.ToStd(next)), reminderPause)
		}
		timing.Pause(ctx, pause)
	}
}
