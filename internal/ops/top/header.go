package top

import (
	"fmt"

	"github.com/charmbracelet/x/ansi"
)

// facts are what the header tells, in order; moment says of when they are.
func facts(s Snapshot, m *meters, moment string) []string {
	list := make([]string, 0, len(s.States)+9)
	list = append(list, "namespace "+text(s.Namespace), "redis "+text(s.Redis), moment)
	for _, c := range s.States {
		list = append(list, fmt.Sprintf("%s %d", text(c.State), c.Tasks))
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

// header is the top of the screen, of at most so many lines.
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
