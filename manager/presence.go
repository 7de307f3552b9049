package manager

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-go/tdf/internal/store"
)

// presenceInterval is how often a running manager says that it is alive.
const presenceInterval = 4 * time.Second

// farewell bounds what is done after Run was told to end.
const farewell = 3 * time.Second

// appear says that this manager is alive, now and until ctx ends; then it takes
// that back. end gets the cause if the manager must not run any longer. The
// result waits for the end of that.
func (m *Manager) appear(ctx context.Context, end context.CancelCauseFunc) (gone func(), err error) {
	p := store.Presence{Instance: store.NewToken(), Name: m.name, StandIn: m.opt.standIn, Force: m.opt.force}
	if err := m.store.Appear(ctx, p); err != nil && !errors.Is(err, ErrUnreachable) {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.stayPresent(ctx, p, end)
	}()
	return func() { <-done }, nil
}

func (m *Manager) stayPresent(ctx context.Context, p store.Presence, end context.CancelCauseFunc) {
	tick := time.NewTicker(presenceInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
			defer cancel()
			if err := m.store.Disappear(last, p); err != nil {
				m.log.Debug("presence not taken back", "error", err)
			}
			return
		case <-tick.C:
			if err := m.store.Appear(ctx, p); errors.Is(err, ErrManagerAlive) {
				end(err)
			} else if err != nil {
				m.log.Debug("presence not renewed", "error", err)
			}
		}
	}
}
