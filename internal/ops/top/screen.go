package top

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/tdf-go/tdf/internal/base/clean"
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

// binding is what some keys do; the help shows it in the words of show and does.
type binding struct {
	keys []string
	show string
	does string
	act  func(s *screen, key string) tea.Cmd
}

// bindings of all keys but those that write the filter.
func bindings() []binding {
	return []binding{
		{[]string{"q", "ctrl+c"}, "q, ctrl+c", "leave", func(*screen, string) tea.Cmd { return tea.Quit }},
		{[]string{"tab", "shift+tab", "1", "2", "3"}, "tab, 1 - 3", "choose a panel", (*screen).choose},
		{[]string{"up", "k", "down", "j"}, "up k, down j", "scroll by a row", (*screen).scroll},
		{[]string{"pgup", "pgdown", "space"}, "pgup, pgdown", "scroll by a page", (*screen).scroll},
		{[]string{"home", "g", "end", "G"}, "home g, end G", "first, last row", (*screen).scroll},
		{[]string{"p"}, "p", "pause, go on", func(s *screen, _ string) tea.Cmd { return s.pause() }},
		{[]string{"+", "=", "-"}, "+, -", "longer, shorter interval", (*screen).change},
		{[]string{"/", "esc"}, "/, enter, esc", "filter, keep, clear", (*screen).search},
		{[]string{"?", "h"}, "?", "show this, or close it", (*screen).explain},
	}
}

// press takes a key.
func (s *screen) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	if s.filter.editing && name != "ctrl+c" {
		s.filter.press(key)
		return nil
	}
	for _, b := range bindings() {
		if slices.Contains(b.keys, name) {
			return b.act(s, name)
		}
	}
	return nil
}

// choose makes a panel the active one.
func (s *screen) choose(key string) tea.Cmd {
	switch key {
	case "tab":
		s.active = (s.active + 1) % panels
	case "shift+tab":
		s.active = (s.active + panels - 1) % panels
	default:
		s.active = strings.Index("123", key)
	}
	return nil
}

// scroll moves the rows of the active panel; settle keeps them within bounds.
func (s *screen) scroll(key string) tea.Cmd {
	at := &s.offset[s.active]
	switch key {
	case "up", "k":
		*at--
	case "down", "j":
		*at++
	case "pgup":
		*at -= s.page()
	case "pgdown", "space":
		*at += s.page()
	case "home", "g":
		*at = 0
	case "end", "G":
		*at = len(s.tables[s.active].rows)
	}
	return nil
}

// change takes the next longer or shorter step, if there is one. It begins now.
func (s *screen) change(key string) tea.Cmd {
	i, exactly := slices.BinarySearch(steps, s.pace.interval)
	if key == "-" {
		i--
	} else if exactly {
		i++
	}
	if i >= 0 && i < len(steps) {
		s.pace.interval = steps[i]
	}
	return s.restart()
}

// search begins to write the filter, or clears it; esc also closes the help.
func (s *screen) search(key string) tea.Cmd {
	switch {
	case key == "/":
		s.help, s.filter.editing = false, true
	case s.help:
		s.help = false
	default:
		s.filter = filter{}
	}
	return nil
}

// explain opens or closes the help.
func (s *screen) explain(string) tea.Cmd {
	s.help = !s.help
	return nil
}

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

// maxFilter bounds the text of a filter, in bytes.
const maxFilter = 100

// filter is the text that rows must have, and whether it is being written.
type filter struct {
	text    string
	editing bool
}

// press takes a key while the filter is written.
func (f *filter) press(key tea.KeyPressMsg) {
	switch key.String() {
	case "enter":
		f.editing = false
	case "esc":
		*f = filter{}
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(f.text)
		f.text = f.text[:len(f.text)-size]
	case "ctrl+u":
		f.text = ""
	default:
		f.add(key.Text)
	}
}

// paste takes a pasted text while the filter is written.
func (f *filter) paste(s string) {
	if f.editing {
		f.add(firstLine(s))
	}
}

func (f *filter) add(s string) {
	if len(f.text)+len(s) <= maxFilter {
		f.text += clean.Line(s, 0)
	}
}
