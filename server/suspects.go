package server

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// suspects are tasks that looked wrong. A disagreement is acted on only if it
// is seen twice without any change in between, because the original's clients
// move a task in several steps.
type suspects struct {
	delay time.Duration
	now   func() time.Time

	mu   sync.Mutex
	seen map[int64]sighting
}

type sighting struct {
	fingerprint string
	since       time.Time
}

func newSuspects(delay time.Duration) *suspects {
	return &suspects{delay: delay, now: time.Now, seen: map[int64]sighting{}}
}

// add puts an id on the list, to be inspected by the background job.
func (s *suspects) add(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen[id]; !ok {
		s.seen[id] = sighting{}
	}
}

// ids lists the suspects.
func (s *suspects) ids() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.seen))
}

// clear takes an id off the list.
func (s *suspects) clear(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, id)
}

// convict reports whether the same disagreement has been seen before, long
// enough ago; else it remembers this sighting.
func (s *suspects) convict(id int64, fingerprint string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.seen[id]
	if ok && was.fingerprint == fingerprint {
		return s.now().Sub(was.since) >= s.delay
	}
	s.seen[id] = sighting{fingerprint: fingerprint, since: s.now()}
	return false
}
