package archive

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/statemachine"
)

// sealed makes a directory with two segments.
func sealed(t *testing.T) (dir string, segments []string) {
	t.Helper()
	dir = t.TempDir()
	for _, batch := range [][]Record{records(1, 1, 2), records(1, 3)} {
		w := open(t, dir)
		noErr(t, w.Write(batch))
		noErr(t, w.Close())
	}
	for _, path := range files(t, dir, ".zst") {
		m, err := readManifest(path)
		noErr(t, err)
		if segments = append(segments, path); m.Records == 1 {
			slices.Reverse(segments)
		}
	}
	if len(segments) == 2 {
		if m, _ := readManifest(segments[0]); m.Records != 2 {
			slices.Reverse(segments)
		}
	}
	return dir, segments
}

// Each damage is told once with the file, and all that can be read is read.
func TestDamages(t *testing.T) {
	t.Parallel()
	truncate := func(to int64) func(*testing.T, string) {
		return func(t *testing.T, path string) { t.Helper(); noErr(t, os.Truncate(path, to)) }
	}
	change := func(end, old, now string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			text, err := os.ReadFile(path + end)
			noErr(t, err)
			changed := strings.Replace(string(text), old, now, 1)
			if changed == string(text) {
				t.Fatalf("%q is not there", old)
			}
			noErr(t, os.WriteFile(path+end, []byte(changed), 0o600))
		}
	}
	for name, c := range map[string]struct {
		damage func(*testing.T, string)
		want   []int64
		says   string
	}{
		"truncated":        {truncate(40), []int64{3}, "is cut: the last 40 bytes"},
		"empty":            {truncate(0), []int64{3}, "0 bytes and 0 records"},
		"no manifest":      {func(t *testing.T, path string) { noErr(t, os.Remove(path+manifestEnd)) }, []int64{1, 2, 3}, "has no manifest"},
		"broken manifest":  {change(manifestEnd, `"format"`, `format`), []int64{1, 2, 3}, "is no manifest"},
		"newer manifest":   {change(manifestEnd, `"format": 1`, `"format": 2`), []int64{1, 2, 3}, "format 2"},
		"another checksum": {change(manifestEnd, `"sha256": "`, `"sha256": "0`), []int64{1, 2, 3}, "checksum"},
		"another size":     {change(manifestEnd, `"bytes": `, `"bytes": 1`), []int64{1, 2, 3}, "its manifest says"},
		"other tasks":      {change(manifestEnd, `"last_id": 2`, `"last_id": 4`), []int64{1, 2, 3}, "other tasks"},
		"gone":             {func(t *testing.T, path string) { noErr(t, os.Remove(path)) }, []int64{3}, "is missing"},
		"unreadable": {func(t *testing.T, path string) {
			noErr(t, os.Remove(path))
			noErr(t, os.Mkdir(path, 0o700))
		}, []int64{3}, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, segments := sealed(t)
			c.damage(t, segments[0])
			all, damages := read(t, dir)
			var got []int64
			for _, r := range all {
				got = append(got, r.ID)
			}
			if slices.Sort(got); !slices.Equal(got, c.want) || len(damages) != 1 || !strings.Contains(damages[0], c.says) {
				t.Errorf("%v, %q, want %v and %q", got, damages, c.want, c.says)
			}
		})
	}
}

// No byte of a segment can change without being told of.
func TestEveryByteCounts(t *testing.T) {
	t.Parallel()
	dir, segments := sealed(t)
	text, err := os.ReadFile(segments[0])
	noErr(t, err)
	for at := range text {
		broken := slices.Clone(text)
		broken[at] ^= 1 << (at % 8)
		noErr(t, os.WriteFile(segments[0], broken, 0o600))
		if _, damages := read(t, dir); len(damages) != 1 {
			t.Fatalf("byte %d: %q", at, damages)
		}
	}
}

// Lines that are no records are told of, and those around them are read.
func TestBadLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := open(t, dir)
	noErr(t, w.Write(records(1, 1)))
	text, err := (&Record{Head: Head{V: Version + 1, ID: 5}}).Line()
	noErr(t, err)
	frames := w.encoder.EncodeAll(append(text, "what\n"...), nil)
	noErr(t, w.add(frames))
	w.part.size += int64(len(frames))
	noErr(t, w.Write(records(1, 2)))
	all, damages := read(t, dir)
	if len(all) != 2 || len(damages) != 1 || !strings.Contains(damages[0], "2 lines") {
		t.Errorf("%d records, %q", len(all), damages)
	}
	w.abandon()
}

// Of several records of a task the one with the highest revision counts, wherever it is; a task of before a flush is another one.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	early := record(2, 9)
	early.Created = "50"
	for i, batch := range [][]Record{{record(1, 5), record(2, 3), record(3, 1)}, {record(1, 4), early, record(2, 7), record(3, 1), record(3, 1)}} {
		w := open(t, dirs[i])
		noErr(t, w.Write(batch))
		noErr(t, w.Close())
	}
	all, damages := read(t, dirs...)
	got := map[Key]int64{}
	for _, r := range all {
		got[r.Key()] = r.Rev
	}
	want := map[Key]int64{{1, "100.5"}: 5, {2, "100.5"}: 7, {2, "50"}: 9, {3, "100.5"}: 1}
	if len(all) != 4 || len(damages) != 0 {
		t.Errorf("%d records, %q", len(all), damages)
	}
	for key, rev := range want {
		if got[key] != rev {
			t.Errorf("task %v: revision %d, want %d", key, got[key], rev)
		}
	}
	r := Reader{Dirs: dirs, Namespace: ns}
	found, err := r.Find(t.Context(), 2)
	if err != nil || len(found) != 2 || found[0].Created != "100.5" || found[0].Rev != 7 || found[1].Created != "50" {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err := r.Find(t.Context(), 8); err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Segments without an id that is wanted are not opened.
func TestWants(t *testing.T) {
	t.Parallel()
	dir, segments := sealed(t)
	noErr(t, os.Truncate(segments[0], 3)) // damaged, and of no interest
	r := Reader{Dirs: []string{dir}, Namespace: ns, Damaged: func(e *DamageError) { t.Error(e) }}
	if found, err := r.Find(t.Context(), 3); err != nil || len(found) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// An end, by the caller or by ctx, ends the reading.
func TestReadingEnds(t *testing.T) {
	t.Parallel()
	dir, _ := sealed(t)
	r := Reader{Dirs: []string{dir}, Namespace: ns}
	enough := errors.New("enough")
	n := 0
	if err := r.Each(t.Context(), func(*Entry) error { n++; return enough }); !errors.Is(err, enough) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n = 0
	if err := r.Each(ctx, func(*Entry) error { n++; cancel(); return nil }); !errors.Is(err, context.Canceled) || n > 2 {
		t.Errorf("%v after %d", err, n)
	}
	r.Dirs = []string{dir + "/none"}
	if err := r.Each(t.Context(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A reader that comes while segments are written and sealed misses nothing that was safe when it began.
func TestReadWhileWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := open(t, dir, func(o *Options) { o.MaxBytes = 1500 })
	safe, done := make(chan int64, 1000), make(chan struct{})
	go func() {
		defer close(done)
		defer close(safe)
		for id := int64(1); id <= 300; id++ {
			if err := w.Write([]Record{NewRecord(id, 1, statemachine.Failed, map[string]string{"0:open": "1", "x": string(noise(100))})}); err != nil {
				t.Error(err)
				return
			}
			safe <- id
		}
	}()
	for n := range safe {
		for len(safe) > 0 {
			n = <-safe
		}
		if n == 0 {
			break
		}
		if got := ids(t, dir); len(got) < int(n) || got[len(got)-1] != int64(len(got)) {
			t.Fatalf("%d were safe, %d are read", n, len(got))
		}
	}
	<-done
	noErr(t, w.Close())
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"b", "{a}", "b-20261122T120000Z-00000000", "b"} {
		w := open(t, dir, func(o *Options) { o.Namespace = name })
		noErr(t, w.Write(records(1, 1)))
		noErr(t, w.Close())
	}
	got, err := Namespaces(dir)
	if want := []string{"b", "b-20261122T120000Z-00000000", "{a}"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if segments, _, err := names(dir, "b"); err != nil || len(segments) != 2 {
		t.Errorf("%v, %v", segments, err)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	var s IDs
	for _, id := range []int64{1, 63, 64, 65535, 65536, 1 << 40, 1} {
		if added := s.Add(id); added == (s.Len() == 6 && id == 1) {
			t.Errorf("%d: added %v", id, added)
		}
	}
	if s.Len() != 6 || !s.Has(1<<40) || s.Has(2) || s.Has(1<<41) {
		t.Errorf("%d ids", s.Len())
	}
}
