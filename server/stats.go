package server

import (
	"maps"
	"sync"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Stats are figures of one server since it was made, for those who watch over it.
type Stats struct {
	// Passed is when the last pass ended, Good when the last one did that went through, both by the clock of this host; zero for none.
	Passed, Good time.Time
	// Err is what the last pass failed with, mostly because Redis is away; nil if it went through.
	Err error
	// Passes counts the passes that went through.
	Passes int64
	// Moves counts the moves of tasks that this server made.
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
	if s.Moves == nil {
		s.Moves = map[Move]int64{}
	}
	s.Moves[Move{m.Event, m.To}]++
}

func (s *stats) repaired(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Repairs += int64(n)
}
