package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/tdf-go/tdf/internal/base/link"
)

// WaitPlan waits until all tasks of a plan have ended, and returns the plan as it
// is then. A held plan is waited for, and so is one that is not ready yet.
// report, unless nil, is called when something has changed, from the calling
// goroutine. While Redis is away it goes on waiting. With the error of ctx, and with
// [ErrGone] if the namespace is flushed meanwhile or Redis loses the plan, it returns
// what it has read last, nil for nothing.
func (m *Manager) WaitPlan(ctx context.Context, id int64, report func(*Plan)) (*Plan, error) {
	redis := link.NewSlog(m.log)
	changes, stop := m.store.Watch(ctx)
	defer stop()
	var last *Plan
	for {
		began := time.Now()
		p, err := m.Plan(ctx, id)
		if last != nil && (errors.Is(err, ErrNoPlan) || err == nil && !p.Created.Equal(last.Created)) {
			return last, goneError(id, p)
		}
		switch {
		case err == nil:
			redis.Answered()
			if report != nil && !last.same(p) {
				report(p)
			}
			last = p
		case ctx.Err() != nil: // why it ended is said below, also where a call was cut short
		case !errors.Is(err, ErrUnreachable):
			return last, err
		default:
			redis.Failed(err) // the pause between two looks is longer
		}
		if last.ended() {
			return last, nil
		}
		if !m.untilChange(ctx, changes, 10*time.Since(began)) {
			return last, fmt.Errorf("wait for plan %d: %w", id, context.Cause(ctx))
		}
	}
}

// goneError says what became of a plan that was there; now is what there is under its id.
func goneError(id int64, now *Plan) error {
	err := fmt.Errorf("plan %d: %w", id, ErrGone)
	if now != nil {
		err = fmt.Errorf("%w; the id means another plan now", err)
	}
	return err
}

func (p *Plan) ended() bool { return p != nil && p.State.Over() && p.Left <= 0 }

func (p *Plan) same(as *Plan) bool {
	return p != nil && p.State == as.State && p.Total == as.Total && p.Left == as.Left && p.HeldBy == as.HeldBy &&
		p.Skipped == as.Skipped && p.Growing == as.Growing && p.GrowthError == as.GrowthError && maps.Equal(p.Ended, as.Ended)
}
