package server

import (
	"slices"
	"sync"
	"time"
)

// suspects are tasks that looked wrong. A disagreement is acted on only if it
// is seen twice without any change in between, because the original's clients
// move a task in several steps.
type suspects struct {
	now func() time.Time
	// met has a signal when somebody has met a task that was not suspected yet.
	met chan struct{}

	mu   sync.Mutex
	seen map[int64]sighting
}

type sighting struct {
	fingerprint string
	since       time.Time
	// next is when to look again.
	next time.Time
}

func newSuspects() *suspects {
	return &suspects{now: time.Now, met: make(chan struct{}, 1), seen: map[int64]sighting{}}
}

// add puts an id on the list, to be inspected by the background job at once.
func (s *suspects) add(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen[id]; ok {
		return
	}
	s.seen[id] = sighting{}
	select {
	case s.met <- struct{}{}:
	default:
	}
}

// due lists the suspects to look at now.
func (s *suspects) due() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []int64
	for id, was := range s.seen {
		if !was.next.After(s.now()) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// clear takes an id off the list.
func (s *suspects) clear(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, id)
}

// convict reports whether the same disagreement was seen at least delay ago;
// else it remembers this sighting.
func (s *suspects) convict(id int64, fingerprint string, delay time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, now := s.seen[id], s.now()
	if fingerprint == was.fingerprint {
		return now.Sub(was.since) >= delay
	}
	s.seen[id] = sighting{fingerprint: fingerprint, since: now, next: now.Add(delay)}
	return false
}
