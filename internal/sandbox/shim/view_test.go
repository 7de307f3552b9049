package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/sandbox/remove"
)

// withoutViews skips where this host lets nobody mount.
func withoutViews(t *testing.T, s *Slot) bool {
	t.Helper()
	if !s.container.Views() && s.container.way.mounts {
		t.Fatalf("root has no views: %s", s.container.noView)
	}
	return !s.container.Views()
}

// prepared makes a program, and a directory for a round of it.
func prepared(t *testing.T, body string) (lower string, p Program) {
	t.Helper()
	lower = script(t, body)
	home := t.TempDir()
	p = Program{Dir: filepath.Join(home, "d"), View: View{Lower: lower, Work: filepath.Join(home, "w"), Store: lower}}
	t.Cleanup(func() { // the kernel lets nobody into what it makes there
		if err := remove.Tree(p.View.Work); err != nil {
			t.Error(err)
		}
	})
	for _, dir := range []string{p.Dir, p.View.Work, filepath.Join(lower, "sub")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return lower, p
}

// A round sees the files of its program in its own directory, may change them there, and
// cannot change the program. Nothing of that is mounted anywhere else.
func TestView(t *testing.T) {
	t.Parallel()
	eachLayer(t, func(t *testing.T, s *Slot) {
		if withoutViews(t, s) {
			t.Skipf("no views here: %s", s.container.noView)
		}
		const body = `ls; echo more >> run.sh; echo out > sub/f; echo x >> "$1/run.sh" || echo refused; rm -f "$1/run.sh" || echo kept`
		for _, again := range []string{"first", "other program", "other program"} {
			lower, p := prepared(t, body)
			before, err := os.ReadFile(filepath.Join(lower, "run.sh"))
			if err != nil {
				t.Fatal(err)
			}
			p.Args = []string{lower}
			result, text := run(t, s, p)
			if result.ExitCode != 0 || !strings.HasPrefix(text, "run.sh\nsub\n") ||
				strings.Count(text, "refused")+strings.Count(text, "kept") != 2 {
				t.Errorf("%s: %+v, it wrote %q", again, result, text)
			}
			after, err := os.ReadFile(filepath.Join(lower, "run.sh"))
			if err != nil || string(after) != string(before) {
				t.Errorf("%s: the program is %q, %v", again, after, err)
			}
			changed, err := os.ReadFile(filepath.Join(p.Dir, "run.sh"))
			if err != nil || !strings.HasSuffix(string(changed), "more\n") {
				t.Errorf("%s: its copy is %q, %v", again, changed, err)
			}
			if left, err := os.ReadDir(filepath.Join(lower, "sub")); err != nil || len(left) != 0 {
				t.Errorf("%s: in the program's directory are %v, %v", again, left, err)
			}
			if table, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(table), p.Dir) {
				t.Errorf("%s: mounted here: %s, %v", again, table, err)
			}
		}
	})
}

// A view that cannot be had starts nothing, and the slot goes on.
func TestNoView(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	if withoutViews(t, s) {
		t.Skipf("no views here: %s", s.container.noView)
	}
	_, bad := prepared(t, `:`)
	bad.View.Lower += "/none"
	r, err := s.Run(t.Context(), bad)
	if !errors.Is(err, ErrView) || r.Started || !strings.Contains(err.Error(), bad.View.Lower) {
		t.Errorf("got %+v, %v", r, err)
	}
	_, p := prepared(t, `ls`)
	if _, text := run(t, s, p); text != "run.sh\nsub\n" {
		t.Errorf("the next round wrote %q", text)
	}
}
