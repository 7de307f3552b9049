package top

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// gap is between two columns, ellipsis at the end of a text that was cut.
const (
	gap      = "  "
	ellipsis = "…"
)

// column is how one column of a table is set.
type column struct {
	title string
	right bool // numbers are aligned to the right
	floor int  // width to which the column may shrink; 0: it never does
	rank  int  // where there is no room, the column with the highest rank goes first
}

// table is a list of rows, each with a cell for every column.
type table struct {
	columns []column
	rows    []row
}

// row is one line of a table. Its cells are clean.
type row struct {
	cells []string
	faint bool // of less interest
}

// setting is a table laid out for a width: the columns kept and how wide each is.
type setting struct {
	table

	kept   []int // indices of columns, ascending
	widths []int // by index of column
}

// set lays the table out; with a width of 0 every text is shown whole.
func (t table) set(width int) *setting {
	s := &setting{table: t, widths: t.natural()}
	for i := range t.columns {
		s.kept = append(s.kept, i)
	}
	if width <= 0 || s.total(s.widths) <= width {
		return s
	}
	narrow := s.floors()
	for len(s.kept) > 1 && s.total(narrow) > width {
		s.drop()
	}
	s.widen(narrow, width-s.total(narrow))
	return s
}

// natural is how wide each column would like to be.
func (t table) natural() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = ansi.StringWidth(c.title)
	}
	for _, r := range t.rows {
		for i, cell := range r.cells {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	return widths
}

// floors is how narrow each column can be.
func (s *setting) floors() []int {
	floors := make([]int, len(s.columns))
	for i, c := range s.columns {
		floors[i] = s.widths[i]
		if c.floor > 0 {
			floors[i] = min(s.widths[i], max(c.floor, ansi.StringWidth(c.title)))
		}
	}
	return floors
}

// total is the width of a line.
func (s *setting) total(widths []int) int {
	sum := len(gap) * (len(s.kept) - 1)
	for _, i := range s.kept {
		sum += widths[i]
	}
	return sum
}

// drop leaves out the column with the highest rank, of equal ones the last.
func (s *setting) drop() {
	worst := 0
	for at, i := range s.kept {
		if s.columns[i].rank >= s.columns[s.kept[worst]].rank {
			worst = at
		}
	}
	s.kept = append(s.kept[:worst:worst], s.kept[worst+1:]...)
}

// widen gives spare room to the columns kept, the first ones first.
func (s *setting) widen(narrow []int, spare int) {
	wish := s.widths
	s.widths = narrow
	for _, i := range s.kept {
		more := min(max(0, spare), wish[i]-narrow[i])
		s.widths[i] += more
		spare -= more
	}
}

// head is the line of titles.
func (s *setting) head() string {
	titles := make([]string, len(s.columns))
	for i, c := range s.columns {
		titles[i] = c.title
	}
	return s.line(titles)
}

// line sets cells; nothing stands behind the last one.
func (s *setting) line(cells []string) string {
	var b strings.Builder
	for at, i := range s.kept {
		if at > 0 {
			b.WriteString(gap)
		}
		cell := ansi.Truncate(cells[i], s.widths[i], ellipsis)
		fill := strings.Repeat(" ", max(0, s.widths[i]-ansi.StringWidth(cell)))
		if s.columns[i].right {
			cell, fill = fill, cell
		}
		b.WriteString(cell + fill)
	}
	return strings.TrimRight(b.String(), " ")
}
