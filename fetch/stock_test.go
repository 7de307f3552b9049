package fetch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// did does an errand, and returns what it was about as NAME@HEX, with a mark for what was removed or kept.
func did(t *testing.T, f *Fetcher, e *task.Errand) (names []string) {
	t.Helper()
	versions, err := f.Do(t.Context(), e)
	noErr(t, err)
	for i := range versions {
		v := &versions[i]
		name := v.Program + "@" + v.SHA256[:min(len(v.SHA256), 6)]
		if v.Removed {
			name += " removed"
		}
		if v.Kept != "" {
			name += " kept"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func wantDid(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestErrands(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	f := newFetcher(t, o)
	old := cached(t, f, "a", "1", 5*time.Hour)
	held := cached(t, f, "a", "2", 5*time.Hour)
	young := cached(t, f, "b", "3", time.Minute)
	write(t, filepath.Join(o.Dir, "a", "run.sh"), []byte(script), 0o755)
	write(t, filepath.Join(o.Dir, "hand", "run.sh"), []byte(script), 0o755)
	write(t, filepath.Join(o.Dir, "none", "else"), nil, 0o644)
	name := func(program string, v Version) string { return program + "@" + v.SHA256[:6] }

	wantDid(t, "all", did(t, f, &task.Errand{}), name("a", old), name("a", held), name("b", young), "a@", "hand@")
	wantDid(t, "of a program", did(t, f, &task.Errand{Versions: []string{"b", "hand"}}), name("b", young), "hand@")
	wantDid(t, "by hash", did(t, f, &task.Errand{Versions: []string{"a@" + old.SHA256[:9]}}), name("a", old))
	wantDid(t, "unused", did(t, f, &task.Errand{UnusedFor: task.Seconds(time.Hour)}), name("a", old), name("a", held))

	versions, err := f.Do(t.Context(), &task.Errand{Versions: []string{"a@" + old.SHA256}})
	noErr(t, err)
	if v := versions[0]; v.Bytes <= 0 || v.Files != 1 || v.Source == "" || time.Since(v.Installed) > time.Hour || time.Since(v.Used) < time.Hour {
		t.Errorf("described as %+v", v)
	}
	manifest := write(t, filepath.Join(old.Dir, manifestFile), []byte(`{"version":1,"program":"a","fetched":"2026-01-02T03:04:05Z","source":"https://h/x.zip?token=canary"}`), 0o644)
	noErr(t, os.Chtimes(manifest, time.Time{}, time.Now().Add(-5*time.Hour)))
	noErr(t, os.Remove(filepath.Join(old.Dir, "run.sh")))
	versions, err = f.Do(t.Context(), &task.Errand{Versions: []string{"a@" + old.SHA256}})
	noErr(t, err)
	if v := versions[0]; !strings.Contains(v.Source, "https://h/x.zip") || strings.Contains(v.Source, "canary") || !v.Installed.IsZero() {
		t.Errorf("a damaged one is described as %+v", v)
	}
	versions, err = f.Do(t.Context(), &task.Errand{Versions: []string{"a"}})
	noErr(t, err)
	for i := range versions {
		if v := &versions[i]; v.SHA256 == "" && (v.Files != 1 || !v.Used.IsZero()) {
			t.Errorf("by hand: %+v; the versions beside it do not count", v)
		}
	}

	gc := &task.Errand{UnusedFor: task.Seconds(time.Hour), Remove: true}
	if err := f.away(t.Context(), &stored{program: "b", hash: young.SHA256, dir: young.Dir}, gc, time.Time{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("used since it was looked at: %v", err)
	}
	wantThere(t, "used since it was looked at", young, true)
	release, err := held.Hold()
	noErr(t, err)
	noErr(t, os.Chtimes(filepath.Join(held.Dir, manifestFile), time.Time{}, time.Now().Add(-5*time.Hour)))
	wantDid(t, "unused for long", did(t, f, gc),
		name("a", old)+" removed", name("a", held)+" kept")
	wantThere(t, "removed", old, false)
	wantDid(t, "a program", did(t, f, &task.Errand{Versions: []string{"a"}, Remove: true}), name("a", held)+" kept", "a@ kept")
	wantThere(t, "held", held, true)
	time.AfterFunc(heldPatience/10, release) // the slot of another worker lets go
	wantDid(t, "held for a moment", did(t, f, &task.Errand{Versions: []string{"a@" + held.SHA256}, Remove: true}), name("a", held)+" removed")
	wantThere(t, "not meant", young, true)
}

// What is asked for names no paths, and nothing is removed by mistake.
func TestHostileErrands(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	f := newFetcher(t, o)
	v := cached(t, f, "a", "1", 5*time.Hour)
	for _, e := range []task.Errand{
		{Versions: []string{"../programs/a"}, Remove: true}, {Versions: []string{"."}, Remove: true}, {Versions: []string{".tdf"}, Remove: true},
		{Versions: []string{"a/" + v.SHA256}, Remove: true}, {Versions: []string{"a@../" + v.SHA256}, Remove: true}, {Versions: []string{"a@"}, Remove: true},
		{Versions: []string{"a@" + v.SHA256 + "0"}, Remove: true}, {Versions: []string{""}, Remove: true}, {Remove: true},
		{Versions: []string{}, UnusedFor: -1, Remove: true}, {Versions: []string{"a", "a@\x00"}, Remove: true},
	} {
		if found, err := f.Do(t.Context(), &e); !errors.As(err, new(*statemachine.FieldError)) || found != nil {
			t.Errorf("%+v: %v, error %v", e, found, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Do(ctx, &task.Errand{Versions: []string{"a"}, Remove: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	wantThere(t, "nothing was meant", v, true)
}
