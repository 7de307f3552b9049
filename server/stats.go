package server

import (
	"maps"
	"sync"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Stats are figures of one server since it was made, for those who watch over it.
type Stats struct {
	// Passed is when a pass ended last, or a call of one that is under way; Good is when one last went through. Both are by the
	// clock of this host, and zero if none has.
	Passed, Good time.Time
	// Err is what the last pass failed with, mostly because Redis is away; nil if it went through.
	Err error
	// Passes counts the passes that went through.
	Passes int64
	// Moves counts the moves of tasks that this server made. Losses of workers are there from the start, so that the first one is a
	// step for those who compare.
	Moves map[Move]int64
	// Repairs counts what the background job put right: records and lists of tasks, and counts. It stays 0 on a healthy site that
	// no foreign client works on.
	Repairs int64
}

// Move is a kind of moves: what happened to the task, and where it came to by that.
type Move struct {
	Event statemachine.Event
	To    statemachine.State
}

// Stats returns the figures as they are now.
func (s *Server) Stats() Stats {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	now := s.stats.Stats
	now.Moves = maps.Clone(now.Moves)
	return now
}

// stats are the figures, which several loops write.
type stats struct {
	mu sync.Mutex
	Stats
}

func newStats() stats {
	return stats{Stats: Stats{Moves: map[Move]int64{
		{statemachine.Lose, statemachine.Open}: 0, {statemachine.Lose, statemachine.Orphaned}: 0,
	}}}
}

// worked notes that Redis has made what a pass asked for: one with much to do takes long.
func (s *stats) worked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Passed = time.Now()
	s.Good = s.Passed
}

// passed notes the end of a pass.
func (s *stats) passed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Passed, s.Err = time.Now(), err
	if err == nil {
		s.Good = s.Passed
		s.Passes++
	}
}

func (s *stats) moved(m *statemachine.Move) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Moves[Move{m.Event, m.To}]++
}

func (s *stats) repaired(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Repairs += int64(n)
}
