package chaos

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// A sign is what shows that something goes on. It is asked again and again.
type sign func(ctx context.Context, s *store.Store) (bool, error)

// awaited is a fault that is felt still.
type awaited struct {
	class class
	since time.Time
	sign  sign
	over  bool // asked by the watcher's goroutine only
}

// watcher looks all the time whether things go on.
type watcher struct {
	store  *store.Store
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	pending []*awaited
	took    map[class][]time.Duration
	// epochs are those that servers have opened, and when they were first seen here.
	// Read it after close.
	epochs map[int64]time.Time
}

// look is how often the watcher looks, and the longest it waits for an answer.
const (
	look   = 25 * time.Millisecond
	answer = 500 * time.Millisecond
)

// newWatcher starts a watcher with connections of its own.
func newWatcher(t *testing.T, sp *storetest.Space) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{store: sp.Dial(t, conn.WithRetries(0)), cancel: cancel, took: map[class][]time.Duration{}, epochs: map[int64]time.Time{}}
	w.done.Go(func() {
		for timing.Pause(ctx, look) {
			w.lookAtAll(ctx)
		}
	})
	t.Cleanup(func() {
		cancel()
		w.done.Wait()
	})
	return w
}

// await begins to wait for a sign, if there is one.
func (w *watcher) await(c class, s sign) {
	if s == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, &awaited{class: c, since: time.Now(), sign: s})
}

// lookAtAll asks for all signs once.
func (w *watcher) lookAtAll(ctx context.Context) {
	w.mu.Lock()
	pending := slices.Clone(w.pending)
	w.mu.Unlock()
	for _, a := range pending {
		w.ask(ctx, a)
	}
	w.lookForEpochs(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = slices.DeleteFunc(w.pending, func(a *awaited) bool { return a.over })
}

// lookForEpochs notes which epochs there are by now.
func (w *watcher) lookForEpochs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	epochs, err := w.store.Epochs(ctx)
	if err != nil {
		return // Redis is away
	}
	for _, e := range epochs {
		if _, known := w.epochs[e.Number]; !known {
			w.epochs[e.Number] = time.Now().Round(0)
		}
	}
}

// ask asks for one sign. No answer is no sign.
func (w *watcher) ask(ctx context.Context, a *awaited) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	if ok, err := a.sign(ctx, w.store); err != nil || !ok {
		return
	}
	a.over = true
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took[a.class] = append(w.took[a.class], time.Since(a.since))
}

// close ends it, and reports how long everything took and what never went on.
func (w *watcher) close(r *report) {
	w.cancel()
	w.done.Wait()
	for _, a := range w.pending {
		r.violate(unrecovered, "%s: nothing goes on after %v", a.class, time.Since(a.since).Round(time.Millisecond))
	}
	for c, took := range w.took {
		r.recovered(c, took)
	}
}
