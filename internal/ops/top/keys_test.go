package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

func TestQuitKeys(t *testing.T) {
	t.Parallel()
	for _, before := range [][]string{nil, {"?"}, {"/"}} {
		for _, key := range []string{"q", "ctrl+c"} {
			_, s := scripted()
			keys(s, before...)
			cmd := keys(s, key)
			written := len(before) > 0 && before[0] == "/" && key == "q"
			if written {
				if cmd != nil || s.filter.text != "q" {
					t.Errorf("q while the filter is written: %v, %q", cmd, s.filter.text)
				}
				continue
			}
			if cmd == nil {
				t.Fatalf("%s after %v does nothing", key, before)
			}
			if _, ok := cmd().(tea.QuitMsg); !ok {
				t.Errorf("%s after %v does not leave", key, before)
			}
		}
	}
}

func TestPanelKeys(t *testing.T) {
	t.Parallel()
	_, s := scripted()
	for i, c := range []struct {
		key  string
		want int
	}{{"tab", workers}, {"tab", failures}, {"tab", queues}, {"shift+tab", failures}, {"2", workers}, {"1", queues}, {"3", failures}, {"x", failures}} {
		if keys(s, c.key); s.active != c.want {
			t.Errorf("step %d: %s chose panel %d, want %d", i, c.key, s.active, c.want)
		}
	}
}

func TestScrollKeys(t *testing.T) {
	t.Parallel()
	sc, s := scripted()
	for i := range 88 {
		sc.snapshot.Workers = append(sc.snapshot.Workers, worker(fmt.Sprintf("more%02d", i)))
	}
	drive(s, s.Init())
	keys(s, "2")
	page := s.page()
	last := 100 - page
	for i, c := range []struct {
		key  string
		want int
	}{
		{"up", 0}, {"down", 1}, {"j", 2}, {"k", 1}, {"up", 0}, {"pgdown", page}, {"pgup", 0}, {"end", last}, {"down", last},
		{"home", 0}, {"G", last}, {"g", 0}, {"pgup", 0},
	} {
		if keys(s, c.key); s.offset[workers] != c.want {
			t.Errorf("step %d: %s went to row %d, want %d", i, c.key, s.offset[workers], c.want)
		}
	}
	keys(s, "end")
	if got := seen(s); !strings.Contains(got, "more87") || !strings.Contains(got, fmt.Sprintf("%d-100 shown", last+1)) {
		t.Errorf("the end is not seen:\n%s", got)
	}
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 200})
	if s.offset[workers] != 0 {
		t.Errorf("row %d is the first although all have room", s.offset[workers])
	}
}

func TestFilterKeys(t *testing.T) {
	t.Parallel()
	_, s := scripted()
	drive(s, s.Init())
	keys(s, "/", "W", "1", "x", "backspace")
	if got := len(s.tables[workers].rows); got != 3 || len(s.tables[queues].rows) != 0 {
		t.Errorf("w1, w10 and w11 expected, not %d rows", got)
	}
	s.Update(tea.PasteMsg{Content: "0\x1b\nmore"})
	if s.filter.text != `W10\x1b` || !strings.Contains(seen(s), `filter: W10\x1b_`) {
		t.Errorf("pasted: %q", s.filter.text)
	}
	keys(s, "esc", "/", "w", "1", "1", "enter", "tab")
	if s.filter.editing || s.active != workers || len(s.tables[workers].rows) != 1 {
		t.Errorf("enter does not keep the filter: %+v, %d rows", s.filter, len(s.tables[workers].rows))
	}
	keys(s, "esc")
	if len(s.tables[workers].rows) != 12 {
		t.Error("esc does not clear the filter")
	}
	s.Update(tea.PasteMsg{Content: "stray"})
	keys(s, strings.Split("/"+strings.Repeat("y", 2*maxFilter), "")...)
	if s.filter.text != strings.Repeat("y", maxFilter) {
		t.Errorf("filter %q", s.filter.text)
	}
}

func TestHelpKeys(t *testing.T) {
	t.Parallel()
	_, s := scripted()
	drive(s, s.Init())
	for _, closing := range []string{"?", "esc", "/"} {
		if keys(s, "?"); !strings.Contains(seen(s), "longer, shorter interval") {
			t.Errorf("no help:\n%s", seen(s))
		}
		if keys(s, closing); s.help {
			t.Errorf("%s does not close the help", closing)
		}
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	sc, s := scripted()
	rest := drive(s, s.Init())
	if cmd := keys(s, "p"); cmd != nil || !strings.Contains(seen(s), "PAUSED") {
		t.Errorf("pause: %v\n%s", cmd, seen(s))
	}
	if cmd := drive(s, rest); cmd != nil {
		t.Error("a rest from before the pause asks again")
	}
	sc.snapshot.Namespace = "other"
	read := keys(s, "p")
	if read == nil || keys(s, "p") != nil || keys(s, "p") != nil {
		t.Fatal("going on asks at once, and once only")
	}
	if drive(s, read) == nil || s.snapshot.Namespace != "other" {
		t.Error("after the pause the screen does not go on")
	}
}

// TestPauseWhileAsking: the answer is shown, nothing follows.
func TestPauseWhileAsking(t *testing.T) {
	t.Parallel()
	_, s := scripted()
	read := s.Init()
	keys(s, "p")
	if cmd := drive(s, read); cmd != nil || !s.have {
		t.Errorf("have %v, next %v", s.have, cmd)
	}
}

func TestInterval(t *testing.T) {
	t.Parallel()
	sc, s := scripted()
	old := drive(s, s.Init())
	rest := keys(s, "+")
	if rest == nil || s.pace.interval != 5*time.Second {
		t.Fatalf("interval %v", s.pace.interval)
	}
	if drive(s, old) != nil {
		t.Error("the old rest still asks: two would run side by side")
	}
	if drive(s, rest) == nil {
		t.Error("the new rest does not ask")
	}
	if len(sc.rests) != 2 || sc.rests[1] != 5*time.Second {
		t.Errorf("rests %v", sc.rests)
	}
	if keys(s, "-") != nil {
		t.Error("a rest begins while a question is under way")
	}
	for range 20 {
		keys(s, "+")
	}
	if s.pace.interval != time.Minute {
		t.Errorf("longest %v", s.pace.interval)
	}
	for range 20 {
		keys(s, "-")
	}
	if s.pace.interval != MinInterval {
		t.Errorf("shortest %v", s.pace.interval)
	}
}
