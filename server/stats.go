package server

import (
	"maps"
	"sync"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Stats are metrics of one server since it was made.
type Stats struct {
	// Active is when a pass, or a call that one makes, last ended; Progress is when one last succeeded. Both are by the clock of this
	// host, and zero until then.
	Active, Progress time.Time
	// Err is the error of the last pass, mostly that Redis is away; nil if it succeeded.
	Err error
	// Passes counts the passes that succeeded.
	Passes int64
	// Moves counts the moves of tasks that this server made. Losses of workers are there from the start, at 0, so that the first one
	// shows as an increase.
	Moves map[Move]int64
	// Repairs counts what the background job repaired: records and lists of tasks, and counts. It stays 0 on a healthy site without
	// foreign clients.
	Repairs int64
}

// Move is a kind of moves: what happened to the task, and the state it led to.
type Move struct {
	Event statemachine.Event
	To    statemachine.State
}

// Stats returns the metrics as they are now.
func (s *Server) Stats() Stats {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	now := s.stats.Stats
	now.Moves = maps.Clone(now.Moves)
	return now
}

// stats are the metrics, which several loops write.
type stats struct {
	mu sync.Mutex
	Stats
}

func newStats() stats {
	return stats{Stats: Stats{Moves: map[Move]int64{
		{statemachine.Lose, statemachine.Open}: 0, {statemachine.Lose, statemachine.Orphaned}: 0,
	}}}
}

// worked notes that a call of a pass succeeded: a pass with much to do takes long.
func (s *stats) worked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Active = time.Now()
	s.Progress = s.Active
}

// passed notes the end of a pass.
func (s *stats) passed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Active, s.Err = time.Now(), err
	if err == nil {
		s.Progress = s.Active
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
