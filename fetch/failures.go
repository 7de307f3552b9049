package fetch

import (
	"sync"
	"time"
)

// failures remembers for a few seconds that a source failed, so that a hundred
// tasks with one bad source do not ask a dead host a hundred times.
type failures struct {
	backoff time.Duration
	now     func() time.Time
	random  func() float64 // in [0,1)

	mu    sync.Mutex
	known map[string]failure
}

type failure struct {
	err   error
	until time.Time
}

func newFailures(backoff time.Duration, now func() time.Time, random func() float64) *failures {
	return &failures{backoff: backoff, now: now, random: random, known: map[string]failure{}}
}

// recent gives the remembered error, unchanged, or nil.
func (f *failures) recent(key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, ok := f.known[key]
	if !ok || !f.now().Before(seen.until) {
		return nil
	}
	return seen.err
}

// remember keeps err for the backoff plus up to as much jitter, and forgets
// what is over, so the map cannot grow for ever.
func (f *failures) remember(key string, err error) {
	if f.backoff == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	for k, old := range f.known {
		if !now.Before(old.until) {
			delete(f.known, k)
		}
	}
	jitter := time.Duration(f.random() * float64(f.backoff))
	f.known[key] = failure{err: err, until: now.Add(f.backoff + jitter)}
}
