package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
)

// lease is the one under which handlers are called, begun where there is none or
// it is lost. Only Run calls it.
func (m *Manager) lease(ctx context.Context) (*handling, error) {
	if m.handling != nil && !m.handling.lost() {
		return m.handling, nil
	}
	if m.handling != nil {
		m.handling.release()
	}
	h, err := m.beginHandling(ctx)
	if err != nil {
		return nil, err
	}
	m.handling = h
	return h, nil
}

// handling is one lease under which Run gives tasks to handlers. It is renewed
// until it is ended or lost; it never comes back, and Run begins another.
type handling struct {
	fleet.Handling
	m *Manager
	// life ends with the lease; the cause of a lost one matches ErrHandlingLost.
	life    context.Context //nolint:containedctx // it is the lease, and outlives the calls
	over    context.CancelCauseFunc
	expires *time.Timer
	told    sync.Once     // that it is lost
	renewed chan struct{} // closed when nothing renews it any more

	mu sync.Mutex // held during calls, so that what is noted here is what Redis has
	// until is when the lease must be held to be over; see term.
	until time.Time
	// held are the tasks it was granted, owed those that it has to give back, or
	// that may have been granted by a call without an answer.
	held, owed map[int64]bool
}

// term is how long the manager relies on a lease after it sent a renewal: a tenth
// less, at most a second, so that its handlers end before another's begin.
func term(lease time.Duration) time.Duration { return lease - min(lease/10, time.Second) }

// beginHandling begins a lease, in the place of one that was lost. It goes on
// after ctx has ended: handlers may take their time.
func (m *Manager) beginHandling(ctx context.Context) (*handling, error) {
	h := &handling{
		Handling: fleet.NewHandling(m.opt.HandlingLease),
		m:        m, renewed: make(chan struct{}), held: map[int64]bool{}, owed: map[int64]bool{},
	}
	var former []string
	if m.handling != nil {
		former = append(former, m.handling.Instance)
	}
	h.until = time.Now().Add(term(h.Lease))
	if err := m.store.BeginHandling(ctx, h.Handling, &m.others, former...); err != nil {
		return nil, err
	}
	h.life, h.over = context.WithCancelCause(context.WithoutCancel(ctx))
	h.expires = time.AfterFunc(time.Until(h.until), func() {
		h.lose(fmt.Errorf("%w: redis has not answered for %v", ErrHandlingLost, term(h.Lease)))
	})
	go h.keep()
	return h, nil
}

// keep renews the lease three times in its time, and more often while that fails or
// when it is time to end another's.
func (h *handling) keep() {
	defer close(h.renewed)
	for pause := h.pause(); ; {
		select {
		case <-h.life.Done():
			return
		case <-time.After(pause):
		}
		switch err := h.renew(); {
		case err == nil:
			pause = h.pause()
		case errors.Is(err, ErrHandlingLost):
			h.lose(err)
		default:
			h.m.log.Debug("handling lease not renewed", "error", err)
			pause = h.Lease / 15
		}
	}
}

func (h *handling) pause() time.Duration { return max(h.m.others.Next(h.Lease/3), h.Lease/15) }

func (h *handling) renew() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := time.Now().Add(term(h.Lease)) // from when it is sent
	if err := h.m.store.KeepHandling(h.life, h.Handling, &h.m.others, slices.Collect(maps.Keys(h.held))...); err != nil {
		return err
	}
	h.until = until
	h.expires.Reset(time.Until(until)) // if it has fired, it is too late for this
	return nil
}

// lose ends the lease on this side; handlers under way are told so.
func (h *handling) lose(err error) {
	h.told.Do(func() {
		h.m.log.Warn("lost the lease on tasks that are handled; another manager may have them", "error", err)
		h.over(err)
	})
}

// lost reports whether the lease is over, also where the process was frozen and
// its timer has not fired yet.
func (h *handling) lost() bool {
	h.mu.Lock()
	late := time.Now().After(h.until)
	h.mu.Unlock()
	return late || h.life.Err() != nil
}

// context is that of a handler: it ends with ctx, and with the lease.
func (h *handling) context(ctx context.Context) (context.Context, context.CancelFunc) {
	within, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })
	return within, func() {
		stop()
		cancel(nil)
	}
}

// take archives tasks that it was granted, asks for others, and gives back all else that it was granted.
func (h *handling) take(ctx context.Context, t *tasks.TakeRequest) (tasks.TakeReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.Copy(h.owed, h.held)
	h.held = map[int64]bool{}
	named := slices.Clone(t.Ask)
	for i := range t.Archive {
		named = append(named, t.Archive[i].ID)
	}
	for _, id := range named {
		delete(h.owed, id)
	}
	t.Instance, t.Back = h.Instance, slices.Sorted(maps.Keys(h.owed))
	taken, err := h.m.store.Take(ctx, t)
	if err != nil {
		for _, id := range named {
			h.owed[id] = true
		}
		return taken, err
	}
	h.owed = map[int64]bool{}
	for _, granted := range taken.Granted {
		h.held[granted.ID] = true
	}
	return taken, nil
}

func (h *handling) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)+len(h.owed) == 0
}

// end gives everything back, whose handlers have returned by now.
func (h *handling) end(ctx context.Context) {
	h.release()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := h.m.store.EndHandling(last, h.Handling); err != nil {
		h.m.log.Debug("handling lease not given back", "error", err)
	}
}

func (h *handling) release() {
	h.over(nil)
	h.expires.Stop()
	h.told.Do(func() {}) // a timer that has fired is waited for, and says nothing from now on
	<-h.renewed
}
