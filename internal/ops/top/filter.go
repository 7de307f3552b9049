package top

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/tdf-go/tdf/internal/base/clean"
)

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
