package server

import (
	"cmp"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// Why there is no verdict, as the log says it.
const (
	reasonStart = "this server has just started"
	reasonAway  = "Redis was away"
	reasonGap   = "this server was held up, or Redis was"
	reasonBack  = "Redis is behind what this server has seen"
)

// steady says who has been silent for long enough, by the server's own clock: it
// remembers which time of the namespace it read when. Who renews its lease after that
// gets a later time, whatever steps the clock of Redis makes. While Redis was away, or
// this server was frozen, workers may have been alive without a lease to show for it;
// then the watching begins anew. Each server judges this for itself.
type steady struct {
	// lease is the longest that a worker may rely on.
	lease time.Duration
	// now is a clock that does not jump: time.Now, whose readings Go compares by
	// the monotonic clock.
	now func() time.Time
	// say logs, once a break, why there is no verdict for how long.
	say func(reason string, wait time.Duration)

	mu sync.Mutex
	// broken is why the contact is interrupted; empty while it lasts.
	broken string
	// heard is when Redis answered last.
	heard time.Time
	// seen are readings of both clocks since the contact began, the first of them the
	// last that is a lease old, if there is one.
	seen []reading
	// told is the reason said last, forgotten once verdicts are allowed.
	told string
}

// reading is what two clocks showed at one moment.
type reading struct {
	own   time.Time
	redis statemachine.Time
}

func newSteady(lease time.Duration, say func(string, time.Duration)) *steady {
	return &steady{lease: lease, now: time.Now, say: say, broken: reasonStart}
}

// failed notes a call without an answer. The watching begins anew with the next one.
func (s *steady) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = reasonAway
}

// answered notes an answer of Redis and the time of the namespace it was given at.
func (s *steady) answered(redis statemachine.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := reading{s.now(), redis}
	s.contact(now.own)
	n := len(s.seen)
	if n > 0 && timing.ToStd(s.seen[n-1].redis.Sub(redis)) > s.lease/3 {
		s.broken = cmp.Or(s.broken, reasonBack) // of a living worker the last heartbeat may be so old
	}
	if s.broken != "" {
		s.begin()
	}
	if n = len(s.seen); n == 0 || now.own.Sub(s.seen[n-1].own) >= s.lease/100 {
		s.seen = append(s.seen, now)
	}
	for len(s.seen) > 1 && now.own.Sub(s.seen[1].own) >= s.lease {
		s.seen = s.seen[1:]
	}
}

// touched notes an answer that came without a time: moves that were made, for
// example, which may take a while.
func (s *steady) touched() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contact(s.now())
}

// contact notes that Redis has answered. Silence for half a lease may hide that it was
// away: a worker whose lease it has cost may be as old as its heartbeat, a third, and that.
func (s *steady) contact(now time.Time) {
	if s.broken == "" && now.Sub(s.heard) > s.lease/2 {
		s.broken = reasonGap
	}
	s.heard = now
}

// begin begins to watch.
func (s *steady) begin() {
	reason := s.broken
	s.seen, s.broken = nil, ""
	if s.told != reason {
		s.told = reason
		s.say(reason, s.lease)
	}
}

// rely sets the longest lease that a worker may rely on.
func (s *steady) rely(lease time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = lease
}

// wait is how long it is until a verdict is allowed, 0 if it is now.
func (s *steady) wait() time.Duration {
	_, left := s.watched()
	return left
}

// watched is how long this server has watched that who sent the last heartbeat before
// some time of the namespace has sent none since, or how long it is until it has.
func (s *steady) watched() (w store.Watched, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != "" || len(s.seen) == 0 {
		return w, s.lease
	}
	first := s.seen[0]
	if left = s.lease - s.now().Sub(first.own); left > 0 {
		return w, left
	}
	s.told = ""
	return store.Watched{Span: timing.FromStd(s.lease), Until: first.redis}, 0
}
