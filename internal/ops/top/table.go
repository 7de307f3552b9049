package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// The panels, in the order of their keys.
const (
	queues = iota
	workers
	failures
	panels // how many there are
)

// titles of the panels.
var titles = [panels]string{"Queues", "Workers", "Newest failures"}

// tables makes the table of each panel from a snapshot.
func tables(s Snapshot, m *meters) [panels]table {
	return [panels]table{
		queues:   queueTable(s.Queues, m, s.At),
		workers:  workerTable(s.Workers, s.Programs, s.At),
		failures: failureTable(s.Failures, s.At),
	}
}

func queueTable(list []task.Queue, m *meters, now time.Time) table {
	t := table{columns: []column{
		{title: "QUEUE", floor: 10},
		{title: "STATE", rank: 2},
		{title: "WAITING", right: true},
		{title: "RUNNING", right: true, rank: 1},
		{title: "PER NODE", right: true, rank: 5},
		{title: "DONE/S", right: true, rank: 3},
		{title: "OLDEST DUE", right: true, rank: 4},
	}}
	for i := range list {
		q := &list[i]
		state, idle := "active", q.Paused || len(q.Damaged) > 0
		if idle {
			state = "paused"
		}
		t.rows = append(t.rows, row{faint: idle, cells: []string{
			text(q.Name), state,
			strconv.FormatInt(q.Waiting, 10), fmt.Sprintf("%d/%s", q.Running, limit(q.Threads)), limit(q.MaxThreads),
			m.queue(q.Name).String(), age(now, q.Oldest),
		}})
	}
	return t
}

func workerTable(list []task.Worker, programs map[int64]string, now time.Time) table {
	t := table{columns: []column{
		{title: "WORKER", floor: 10},
		{title: "NODE", floor: 8, rank: 5},
		{title: "STATE", rank: 1},
		{title: "SLOTS", right: true, rank: 2},
		{title: "HEARTBEAT", right: true, rank: 3},
		{title: "RUNS", floor: 12, rank: 4},
	}}
	for i := range list {
		w := &list[i]
		if w.State == task.WorkerStopped {
			continue
		}
		runs := make([]string, len(w.Tasks))
		for j, id := range w.Tasks {
			runs[j] = strconv.FormatInt(id, 10)
			if programs[id] != "" {
				runs[j] += " " + programs[id]
			}
		}
		t.rows = append(t.rows, row{cells: []string{
			text(w.Name), text(w.Node), text(w.Doing()), fmt.Sprintf("%d/%d", w.Busy, w.Slots),
			age(now, w.Heartbeat), text(strings.Join(runs, ", ")),
		}})
	}
	return t
}

func failureTable(list []manager.Failure, now time.Time) table {
	t := table{columns: []column{
		{title: "TASK", floor: 10},
		{title: "PROGRAM", floor: 8, rank: 3},
		{title: "WORKER", floor: 8, rank: 4},
		{title: "CLASS", rank: 2},
		{title: "AGE", right: true, rank: 1},
		{title: "ERROR", floor: 12},
	}}
	for i := range list {
		f := &list[i]
		class := string(cmp.Or(f.Round.Class, statemachine.Class(f.Task.End())))
		t.rows = append(t.rows, row{cells: []string{
			strconv.FormatInt(f.Task.ID, 10), text(f.Task.Program), text(f.Round.Worker), text(class), age(now, f.At), firstLine(f.Round.Error),
		}})
	}
	return t
}

// matching is the table with only the rows that have the words of a filter in
// some cell, in either case.
func (t table) matching(filter string) table {
	if filter == "" {
		return t
	}
	filter = strings.ToLower(filter)
	kept := make([]row, 0, len(t.rows))
	for _, r := range t.rows {
		if slices.ContainsFunc(r.cells, func(cell string) bool { return strings.Contains(strings.ToLower(cell), filter) }) {
			kept = append(kept, r)
		}
	}
	t.rows = kept
	return t
}

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
	s := &setting{table: t, widths: make([]int, len(t.columns))}
	narrow := make([]int, len(t.columns))
	for i, c := range t.columns {
		s.kept = append(s.kept, i)
		title := ansi.StringWidth(c.title)
		s.widths[i] = title
		for _, r := range t.rows {
			s.widths[i] = max(s.widths[i], ansi.StringWidth(r.cells[i]))
		}
		if narrow[i] = s.widths[i]; c.floor > 0 {
			narrow[i] = min(s.widths[i], max(c.floor, title))
		}
	}
	if width <= 0 || s.total(s.widths) <= width {
		return s
	}
	for len(s.kept) > 1 && s.total(narrow) > width {
		s.drop()
	}
	s.widen(narrow, width-s.total(narrow))
	return s
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
	s.kept = slices.Delete(s.kept, worst, worst+1)
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

const (
	// none stands where there is no value.
	none = "-"
	// clock is how moments are written.
	clock = "15:04:05"
	// maxText bounds a cell, in bytes: no terminal is wider, and a task may
	// report an error of any length.
	maxText = 500
)

// text makes a text from elsewhere fit for a cell.
func text(s string) string {
	if s == "" {
		return none
	}
	return clean.Line(s, maxText)
}

// firstLine is the first line of a text that is not blank.
func firstLine(s string) string {
	s = strings.TrimSpace(s)
	if end := strings.IndexAny(s, "\r\n"); end >= 0 {
		s = s[:end]
	}
	return text(s)
}

// limit writes a limit.
func limit(n task.Limit) string {
	if n == task.Unlimited {
		return none
	}
	return string(n)
}

// age writes how long before now a moment was; one that has yet to come is now.
func age(now, then time.Time) string {
	if then.IsZero() {
		return none
	}
	return span(now.Sub(then))
}

// span writes a duration in its two largest units.
func span(d time.Duration) string {
	s := max(0, int64(d/time.Second))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
	}
}

// String writes a rate with as many digits as its size deserves.
func (r rate) String() string {
	switch {
	case !r.known:
		return none
	case r.perSecond == 0:
		return "0"
	case r.perSecond < 0.1:
		return fmt.Sprintf("%.3f", r.perSecond)
	case r.perSecond < 100:
		return fmt.Sprintf("%.1f", r.perSecond)
	default:
		return fmt.Sprintf("%.0f", r.perSecond)
	}
}
