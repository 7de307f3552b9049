package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tdf-go/tdf/statemachine"
)

// styles of the screen. They mean the same without colours, which NO_COLOR and
// poor terminals take away.
type styles struct {
	alarm, active, title, head, faint, plain lipgloss.Style
}

func newStyles() styles {
	plain := lipgloss.NewStyle()
	return styles{
		alarm:  plain.Bold(true).Reverse(true).Foreground(lipgloss.Red),
		active: plain.Bold(true).Reverse(true),
		title:  plain.Bold(true),
		head:   plain.Underline(true),
		faint:  plain.Faint(true),
		plain:  plain,
	}
}

// View is the screen for the program.
func (s *screen) View() tea.View {
	v := tea.NewView(strings.Join(s.lines(), "\n"))
	v.AltScreen = true
	return v
}

// lines are exactly as many as the screen is high, none wider than it is.
func (s *screen) lines() []string {
	if s.width <= 0 || s.height <= 0 {
		return nil
	}
	p := painter{width: s.width, styles: newStyles()}
	if s.help {
		s.paintHelp(&p)
	} else {
		s.paint(&p)
	}
	for len(p.lines) < s.height-1 {
		p.add(p.plain, "")
	}
	p.lines = p.lines[:s.height-1]
	p.add(p.faint, s.footer())
	return p.lines
}

// paint draws header, banner and panels.
func (s *screen) paint(p *painter) {
	l := s.layout()
	for _, line := range l.header {
		p.add(p.title, line)
	}
	if l.banner != "" {
		p.add(p.alarm, l.banner)
	}
	for i := range panels {
		if l.shown[i] {
			s.paintPanel(p, i, l.rows[i])
		}
	}
}

// paintPanel draws a panel with its title, its head and a number of rows.
func (s *screen) paintPanel(p *painter, panel, rows int) {
	style := p.title
	if panel == s.active {
		style = p.active
	}
	t := s.tables[panel]
	from := s.offset[panel]
	to := min(len(t.rows), from+rows)
	p.add(style, s.title(panel, from, to))
	set := t.set(s.width)
	p.add(p.head, set.head())
	for _, r := range t.rows[from:to] {
		style := p.plain
		if r.faint {
			style = p.faint
		}
		p.add(style, set.line(r.cells))
	}
	if rows > 0 && len(t.rows) == 0 {
		p.add(p.faint, none)
	}
}

// title of a panel: its key, its name, how many rows there are and which are shown.
func (s *screen) title(panel, from, to int) string {
	n := len(s.tables[panel].rows)
	title := fmt.Sprintf("%d %s: %d", panel+1, titles[panel], n)
	if to-from < n {
		title += fmt.Sprintf(", %d-%d shown", min(from+1, to), to)
	}
	if s.filter.text != "" {
		title += fmt.Sprintf(", filter %q", s.filter.text)
	}
	return title
}

// paintHelp draws what the keys do.
func (s *screen) paintHelp(p *painter) {
	for _, b := range bindings() {
		p.add(p.plain, fmt.Sprintf("%-14s %s", b.show, b.does))
	}
}

// footer is the last line.
func (s *screen) footer() string {
	if s.filter.editing {
		return "filter: " + s.filter.text + "_"
	}
	return "q leave  ? keys  tab panel  / filter  p pause"
}

// painter collects lines.
type painter struct {
	styles

	width int
	lines []string
}

// add cuts a line to the width and gives it its style.
func (p *painter) add(style lipgloss.Style, line string) {
	p.lines = append(p.lines, style.Render(ansi.Truncate(line, p.width, ellipsis)))
}

// split is the least number of lines with which all panels are shown, not only
// the active one; each panel has two lines beside its rows.
const (
	frame = 2
	split = panels * (frame + 2)
)

// layout is where the lines of the screen go.
type layout struct {
	header []string
	banner string
	shown  [panels]bool
	rows   [panels]int // how many rows each panel has room for
}

// layout gives the header its share, the footer one line and the panels the rest.
func (s *screen) layout() layout {
	l := layout{header: s.header(max(1, s.height/4)), banner: s.banner()}
	room := s.height - len(l.header) - 1
	if l.banner != "" {
		room--
	}
	if room < split {
		l.shown[s.active] = true
		l.rows[s.active] = max(0, room-frame)
		return l
	}
	s.share(&l, room)
	return l
}

// share gives each panel what it needs up to a third, and what is left to
// those that need more, the active one first.
func (s *screen) share(l *layout, room int) {
	left := room
	for i := range panels {
		l.shown[i] = true
		l.rows[i] = min(s.need(i), room/panels-frame)
		left -= frame + l.rows[i]
	}
	for turn := range panels {
		i := (s.active + turn) % panels
		more := min(left, s.need(i)-l.rows[i])
		l.rows[i] += more
		left -= more
	}
}

// need is how many rows a panel would fill; an empty one has a row that says so.
func (s *screen) need(panel int) int { return max(1, len(s.tables[panel].rows)) }

// facts are what the header tells, in order; moment says of when they are.
func facts(s Snapshot, m *meters, moment string) []string {
	states := statemachine.States()
	list := append(make([]string, 0, len(states)+9), "namespace "+text(s.Namespace), "redis "+text(s.Redis), moment)
	for _, state := range states {
		list = append(list, fmt.Sprintf("%s %d", state, s.Counts[state]))
	}
	list = append(list, counter("done", s.Done, &m.done)...)
	list = append(list, counter("failures", s.Failed, &m.failed)...)
	return list
}

// counter is a count with its rates, once they are known.
func counter(name string, n int64, m *meter) []string {
	list := []string{fmt.Sprintf("%s %d", name, n)}
	if long := m.long(); long.known {
		list = append(list,
			fmt.Sprintf("%s %v/s in 1m", name, m.short()),
			fmt.Sprintf("%s %v/s since %s", name, long, m.first.at.Format(clock)))
	}
	return list
}

// flow sets texts into lines of a width (0: one line); a text stays whole if it can.
func flow(texts []string, width int) []string {
	var lines []string
	line := ""
	for _, t := range texts {
		longer := t
		if line != "" {
			longer = line + gap + t
		}
		if line != "" && width > 0 && ansi.StringWidth(longer) > width {
			lines = append(lines, line)
			longer = t
		}
		line = longer
	}
	return append(lines, line)
}

// header is the top of the screen, cut to a number of lines.
func (s *screen) header(lines int) []string {
	if !s.have {
		return []string{"waiting for the first snapshot"}
	}
	moment := fmt.Sprintf("%s every %v", s.snapshot.At.Format(clock), s.pace.interval)
	if s.paused {
		moment += " PAUSED"
	}
	all := flow(facts(s.snapshot, &s.meters, moment), s.width)
	return all[:min(len(all), lines)]
}

// banner says that the source fails, and from when the data is; "" if it does not.
func (s *screen) banner() string {
	if s.err == nil {
		return ""
	}
	said := firstLine(s.err.Error())
	age := "no data yet"
	if s.have {
		age = "data of " + s.snapshot.At.Format(clock)
	}
	return fmt.Sprintf("NO ANSWER since %s, %s: %s", s.errSince.Format(clock), age, said)
}
