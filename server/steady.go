package server

import (
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// Why there is no verdict, as the log says it.
const (
	reasonStart = "this server has just started"
	reasonAway  = "Redis was away"
	reasonGap   = "this server was held up, or Redis was"
	reasonJump  = "the clock of Redis jumped"
)

// steady says whether the silence of a worker means anything. While Redis was
// away, or its clock jumped, or this server was frozen, workers may have been
// alive without a lease to show for it. So there is no verdict before one full
// lease of contact with Redis without a break: whoever lives has renewed its
// lease by then. Each server judges this for itself.
type steady struct {
	lease time.Duration
	// now is a clock that does not jump: time.Now, whose readings Go compares by
	// the monotonic clock.
	now func() time.Time
	// say logs, once a break, why there is no verdict for how long.
	say func(reason string, wait time.Duration)

	mu sync.Mutex
	// broken is why the contact is interrupted; empty while it lasts.
	broken string
	// since is when the contact began, heard when Redis answered last.
	since, heard time.Time
	// anchor is a pair of readings of both clocks, less than two leases old.
	anchor reading
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

// failed notes a call without an answer. Verdicts wait for a full lease after
// the next answer.
func (s *steady) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = reasonAway
}

// answered notes an answer of Redis and the time it was given at.
func (s *steady) answered(redis statemachine.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := reading{s.now(), redis}
	if s.broken == "" {
		s.broken = s.fault(now)
	}
	s.heard = now.own
	if s.broken != "" {
		s.begin(now)
	} else if now.own.Sub(s.anchor.own) >= s.lease {
		s.anchor = now // the clocks may drift apart slowly
	}
}

// touched notes an answer that came without a time: moves that were made, for
// example, which may take a while.
func (s *steady) touched() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != "" {
		return
	}
	now := s.now()
	if now.Sub(s.heard) > s.lease/2 {
		s.broken = reasonGap
	}
	s.heard = now
}

// fault compares a reading with those before it. Silence for half a lease may
// hide that Redis was away: a worker whose lease it has cost may be as old as
// its heartbeat, a third, and that.
func (s *steady) fault(now reading) string {
	own, redis := now.own.Sub(s.anchor.own), timing.ToStd(now.redis.Sub(s.anchor.redis))
	switch {
	case now.own.Sub(s.heard) > s.lease/2:
		return reasonGap
	case (redis - own).Abs() > s.lease/3:
		return reasonJump
	default:
		return ""
	}
}

// begin starts a contact anew.
func (s *steady) begin(now reading) {
	reason := s.broken
	s.since, s.anchor, s.broken = now.own, now, ""
	if s.told != reason {
		s.told = reason
		s.say(reason, s.lease)
	}
}

// wait is how long it is until a verdict is allowed, 0 if it is now.
func (s *steady) wait() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != "" {
		return s.lease
	}
	left := max(0, s.lease-s.now().Sub(s.since))
	if left == 0 {
		s.told = ""
	}
	return left
}
