package top

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

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

// change takes the next interval, which begins now.
func (s *screen) change(key string) tea.Cmd {
	if key == "-" {
		s.pace.shorter()
	} else {
		s.pace.longer()
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
