package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tdf-go/tdf/statemachine"
)

func TestScreens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		width, height int
		keys          []string
	}{
		{"wide", 140, 40, nil},
		{"usual", 80, 24, nil},
		{"narrow", 40, 24, []string{"3"}},
		{"narrow_low", 40, 10, nil},
		{"low_workers", 80, 10, []string{"2", "down", "down"}},
		{"tiny", 8, 3, nil},
		{"help", 40, 10, []string{"?"}},
		{"filter", 80, 24, []string{"/", "L", "I", "C"}},
		{"paused", 100, 24, []string{"p", "+"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := later(time.Minute)
			s.Update(tea.WindowSizeMsg{Width: c.width, Height: c.height})
			keys(s, c.keys...)
			golden(t, "screen_"+c.name, seen(s))
		})
	}
}

// later is a screen with two snapshots, so that rates are known.
func later(d time.Duration) *screen {
	sc, s := scripted()
	drive(s, s.Init())
	sc.now = sc.now.Add(d)
	sc.snapshot.Done += 90
	sc.snapshot.Failed += 3
	sc.snapshot.Queues[0].Ended[statemachine.Succeeded] += 90
	s.Update(s.feed.read())
	return s
}

func TestErrorBanner(t *testing.T) {
	t.Parallel()
	sc, s := scripted()
	rest := drive(s, s.Init())
	for range 2 {
		sc.now, sc.err = sc.now.Add(7*time.Second), errAway
		rest = drive(s, drive(s, rest))
		if rest == nil {
			t.Fatal("after an error nothing is asked any more")
		}
	}
	golden(t, "screen_away", seen(s))
	sc.err = nil
	drive(s, drive(s, rest))
	if got := seen(s); strings.Contains(got, "NO ANSWER") || !strings.Contains(got, "licensed") {
		t.Errorf("after the source came back:\n%s", got)
	}
}

func TestErrorBeforeAnySnapshot(t *testing.T) {
	t.Parallel()
	sc, s := scripted()
	if got := seen(s); !strings.Contains(got, "waiting for the first snapshot") {
		t.Error(got)
	}
	sc.err = fmt.Errorf("bad\x1b]0;title\a: %w", errAway)
	drive(s, s.Init())
	got := seen(s)
	if want := `NO ANSWER since 14:00:00, no data yet: bad\x1b]0;title\x07: dial`; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

// TestEverySize: whatever the size and the mode, the screen is filled exactly.
func TestEverySize(t *testing.T) {
	t.Parallel()
	for _, pressed := range [][]string{nil, {"3"}, {"?"}, {"/", "x", "계"}} {
		sc, s := scripted()
		drive(s, s.Init())
		sc.err = errAway
		s.Update(s.feed.read())
		keys(s, pressed...)
		for width := 0; width < 130; width += 1 + width/20 {
			for height := 0; height < 50; height += 1 + height/10 {
				s.Update(tea.WindowSizeMsg{Width: width, Height: height})
				check(t, s, width, height)
			}
		}
	}
}

func check(t *testing.T, s *screen, width, height int) {
	t.Helper()
	lines := s.lines()
	if want := height; len(lines) != want && width > 0 {
		t.Fatalf("%dx%d: %d lines", width, height, len(lines))
	}
	for _, line := range lines {
		plain := ansi.Strip(line)
		if ansi.StringWidth(plain) > width || strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' || r == '\u202e' }) {
			t.Fatalf("%dx%d: %q is wider or has control characters", width, height, line)
		}
	}
}

func TestStylesWithoutColours(t *testing.T) {
	t.Parallel()
	p := painter{width: 10, styles: newStyles()}
	p.add(p.active, "active")
	p.add(p.head, "head")
	p.add(p.faint, "faint")
	for i, want := range []string{"\x1b[1;7m", "\x1b[4", "\x1b[2m"} {
		if !strings.HasPrefix(p.lines[i], want) {
			t.Errorf("%q does not begin with %q", p.lines[i], want)
		}
	}
}

func TestTableKeepsWhatMatters(t *testing.T) {
	t.Parallel()
	s := sample()
	table := workerTable(s.Workers, s.Programs, start)
	for width, want := range map[int]string{
		0:  "WORKER  NODE    STATE  SLOTS  HEARTBEAT  RUNS",
		55: "WORKER  NODE    STATE  SLOTS  HEARTBEAT  RUNS",
		50: "WORKER  STATE  SLOTS  HEARTBEAT  RUNS",
		36: "WORKER  STATE  SLOTS  HEARTBEAT",
		22: "WORKER  STATE  SLOTS",
		6:  "WORKER",
		3:  "WORKER",
	} {
		if got := table.set(width).head(); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}
