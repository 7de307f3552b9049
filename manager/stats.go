package manager

import (
	"cmp"
	"slices"
	"time"
)

// Stats says what Run has done since the Manager was made.
type Stats struct {
	// Rounds is the number of rounds, Archived the number of tasks archived.
	Rounds, Archived int
	// HandlerErrors is how often a handler returned an error.
	HandlerErrors int
	// Retrying are the tasks that wait for another call of their handler.
	Retrying []Retry
}

// Retry is a task whose handler returned an error.
type Retry struct {
	ID int64
	// Attempts is how often the handler was called for it.
	Attempts int
	// Next is when it may be called again.
	Next time.Time
	// Err is what it returned last.
	Err error
}

// Stats may be called at any time, also while Run is under way.
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	for id, e := range m.book.entries {
		if e.attempts > 0 && e.handled < 0 {
			s.Retrying = append(s.Retrying, Retry{ID: id, Attempts: e.attempts, Next: e.next, Err: e.err})
		}
	}
	slices.SortFunc(s.Retrying, func(a, b Retry) int { return cmp.Compare(a.ID, b.ID) })
	return s
}
