package shim

import (
	"context"
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

// A directory that is left alone is shown again without another mount, and one whose view
// cannot be had starts nothing, after which the slot goes on.
func TestViewAgain(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	if withoutViews(t, s) {
		t.Skipf("no views here: %s", s.container.noView)
	}
	_, p := prepared(t, `stat -c %d .`)
	_, first := run(t, s, p)
	_, second := run(t, s, p)
	if first != second {
		t.Errorf("mounted at the devices %q and %q", first, second)
	}
	_, bad := prepared(t, `:`)
	bad.View.Lower += "/none"
	r, err := s.Run(t.Context(), bad)
	if !errors.Is(err, ErrView) || r.Started || !strings.Contains(err.Error(), bad.View.Lower) {
		t.Errorf("got %+v, %v", r, err)
	}
	_, p = prepared(t, `stat -c %d .`)
	if _, third := run(t, s, p); third == "" {
		t.Error("the next round wrote nothing")
	}
}

// BenchmarkView is a round in a new overlay, to compare with one in the program's own directory.
func BenchmarkView(b *testing.B) {
	for name, v := range map[string]bool{"plain": false, "overlay": true} {
		b.Run(name, func(b *testing.B) {
			s := open(b, Options{TempDir: b.TempDir()})
			lower := b.TempDir()
			if err := os.WriteFile(lower+"/run.sh", []byte("#!/bin/true\n"), 0o700); err != nil {
				b.Fatal(err)
			}
			home := b.TempDir()
			p := Program{Dir: lower}
			for b.Loop() {
				if v {
					p = Program{Dir: home + "/d", View: View{Lower: lower, Work: home + "/w"}}
					_ = os.Mkdir(p.Dir, 0o700)
					_ = os.Mkdir(p.View.Work, 0o700)
				}
				if _, err := s.Run(context.Background(), p); err != nil {
					b.Fatal(err)
				}
				if v {
					if err := errors.Join(remove.Tree(p.Dir), remove.Tree(p.View.Work)); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
