package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// styles of the screen. They mean the same without colours, which NO_COLOR and
// poor terminals take away.
type styles struct {
	header, alarm, active, title, head, faint, plain lipgloss.Style
}

func newStyles() styles {
	plain := lipgloss.NewStyle()
	return styles{
		header: plain.Bold(true),
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
		p.add(p.header, line)
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

// paintPanel draws a panel with its title, its head and so many rows.
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
