package top

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
)

// steps are the intervals that keys choose.
var steps = []time.Duration{
	MinInterval, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
}

// pace is when the source is asked next. At any time one question is under way
// (asking), or one rest is valid (that of the turn), or the screen is paused.
type pace struct {
	interval time.Duration
	turn     int // rests of other turns are void
	asking   bool
}

// longer and shorter are the next steps from the interval.
func (p *pace) longer() {
	for _, d := range steps {
		if d > p.interval {
			p.interval = d
			return
		}
	}
}

func (p *pace) shorter() {
	for _, d := range slices.Backward(steps) {
		if d < p.interval {
			p.interval = d
			return
		}
	}
}

// read asks the source, unless that is under way.
func (s *screen) read() tea.Cmd {
	if s.pace.asking {
		return nil
	}
	s.pace.asking = true
	return func() tea.Msg { return s.feed.read() }
}

// rest waits for the interval after an answer.
func (s *screen) rest() tea.Cmd {
	s.pace.asking = false
	return s.restart()
}

// restart makes the interval begin now, unless the screen is paused or a
// question is under way.
func (s *screen) restart() tea.Cmd {
	s.pace.turn++
	if s.paused || s.pace.asking {
		return nil
	}
	d, turn := s.pace.interval, s.pace.turn
	return func() tea.Msg { return s.feed.rest(d, turn) }
}

// wake asks again after a rest that is still valid.
func (s *screen) wake(r rested) tea.Cmd {
	if r.turn != s.pace.turn || s.paused {
		return nil
	}
	return s.read()
}

// pause stops asking, or goes on at once.
func (s *screen) pause() tea.Cmd {
	s.paused = !s.paused
	s.pace.turn++
	if s.paused {
		return nil
	}
	return s.read()
}
