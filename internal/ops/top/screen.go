package top

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// screen is the model: all that decides what is seen.
type screen struct {
	feed *feed
	pace pace

	width, height int

	snapshot Snapshot // the last good one
	have     bool     // there is one
	meters   meters
	err      error     // of the last question; nil if it was answered
	errSince time.Time // when the first question in a row failed

	tables [panels]table // of the snapshot, filtered
	active int           // the panel chosen
	offset [panels]int   // first row shown of each
	filter filter
	help   bool
	paused bool
}

// newScreen makes the screen of a feed. It has no size before the program tells it.
func newScreen(f *feed, o Options) *screen {
	return &screen{feed: f, pace: pace{interval: o.Interval}}
}

// Init asks for the first snapshot.
func (s *screen) Init() tea.Cmd { return s.read() }

// Update takes a message of the program.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		next = s.press(msg)
	case tea.PasteMsg:
		s.filter.paste(msg.Content)
	case answer:
		s.take(msg)
		next = s.rest()
	case rested:
		next = s.wake(msg)
	}
	s.settle()
	return s, next
}

// take keeps an answer. An error leaves the last snapshot as it is.
func (s *screen) take(a answer) {
	if a.err != nil {
		if s.err == nil {
			s.errSince = a.at
		}
		s.err = a.err
		return
	}
	s.err, s.have = nil, true
	s.snapshot = a.snapshot
	s.meters.add(a.snapshot, a.at)
}

// settle brings the tables up to date and the offsets within them.
func (s *screen) settle() {
	for i, t := range tables(s.snapshot, &s.meters) {
		s.tables[i] = t.matching(s.filter.text)
	}
	heights := s.layout().rows
	for i := range s.offset {
		s.offset[i] = max(0, min(s.offset[i], len(s.tables[i].rows)-heights[i]))
	}
}

// page is how many rows the active panel shows.
func (s *screen) page() int { return max(1, s.layout().rows[s.active]) }
