package archive

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/disk"
)

// left makes a directory with a part of two batches that nobody has, and returns its path and where the first batch ends.
func left(t *testing.T) (dir, path string, first int64) {
	t.Helper()
	dir = t.TempDir()
	w := open(t, dir)
	noErr(t, w.Write(records(1, 1, 2)))
	first = w.part.size
	noErr(t, w.Write(records(1, 3, 4)))
	path = w.part.file.Name()
	w.abandon()
	return dir, path, first
}

// Wherever the end of a part was torn off, what was written before is there and sealed.
func TestTornTail(t *testing.T) {
	t.Parallel()
	dir, path, first := left(t)
	text, err := os.ReadFile(path)
	noErr(t, err)
	for cut := range len(text) + 1 {
		for i, rest := range []string{"", "\x00\x00\x00", "garbage"} {
			if i > 0 && cut%9 != 0 {
				continue
			}
			noErr(t, os.RemoveAll(dir))
			noErr(t, os.Mkdir(dir, 0o700))
			noErr(t, os.WriteFile(path, append(slices.Clone(text[:cut]), rest...), 0o600))
			var want []int64
			switch {
			case cut == len(text):
				want = []int64{1, 2, 3, 4}
			case int64(cut) >= first:
				want = []int64{1, 2}
			}
			if got := ids(t, dir); !slices.Equal(got, want) {
				t.Fatalf("cut at %d: %v before it is sealed, want %v", cut, got, want)
			}
			noErr(t, open(t, dir).Close())
			if got := ids(t, dir); !slices.Equal(got, want) || len(files(t, dir, partEnd)) != 0 {
				t.Fatalf("cut at %d: %v when it is sealed, want %v; %v", cut, got, want, files(t, dir, ""))
			}
			if want == nil && len(files(t, dir, "")) != 0 {
				t.Fatalf("cut at %d: %v is left of nothing", cut, files(t, dir, ""))
			}
		}
	}
}

// A crash after the manifest was written, or while it was, is repaired as well.
func TestHalfSealed(t *testing.T) {
	t.Parallel()
	for _, stale := range []string{manifestEnd, manifestEnd + disk.DraftEnd} {
		dir, path, _ := left(t)
		noErr(t, os.WriteFile(strings.TrimSuffix(path, partEnd)+stale, []byte(`{"format":1,"records":77}`), 0o600))
		wantIDs(t, dir, 1, 2, 3, 4)
		noErr(t, open(t, dir).Close())
		wantIDs(t, dir, 1, 2, 3, 4)
		if got := files(t, dir, ""); len(got) != 2 {
			t.Errorf("%v, want a segment and its manifest", got)
		}
	}
}

// Damage in the middle is not taken for a torn tail: nothing is cut off, and the rest is read.
func TestDamagedPart(t *testing.T) {
	t.Parallel()
	dir, path, first := left(t)
	text, err := os.ReadFile(path)
	noErr(t, err)
	for at := range first {
		broken := slices.Clone(text)
		broken[at] ^= 0xff
		noErr(t, os.WriteFile(path, broken, 0o600))
		var told []string
		noErr(t, open(t, dir, func(o *Options) { o.Problem = func(err error) { told = append(told, err.Error()) } }).Close())
		after, err := os.ReadFile(path)
		if len(told) != 1 || !strings.Contains(told[0], path) || err != nil || string(after) != string(broken) {
			t.Fatalf("byte %d: %q, %v", at, told, err)
		}
		all, damages := read(t, dir)
		if len(damages) != 1 || len(all) != 2 || all[0].ID != 3 {
			t.Fatalf("byte %d: %d records, %q", at, len(all), damages)
		}
	}
}

const writerProgram = "archive-writer"

// writeForEver writes batches of three tasks and says the last id that is safe.
func writeForEver(dir string) {
	w, err := Open(Options{Dir: dir, Namespace: ns, MaxBytes: 3000})
	for id := int64(1); err == nil; id += 3 {
		if err = w.Write(records(1, id, id+1, id+2)); err == nil {
			fmt.Println(id + 2)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// Killed at any moment, a writer leaves all that it said is safe, and nothing that the next one cannot put right.
func TestKilled(t *testing.T) {
	// Not parallel: for a moment its child has the files, and so the locks, of other tests.
	for round := range 12 {
		dir := filepath.Join(t.TempDir(), "archive")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, os.Args[0], writerProgram, dir)
		out, err := cmd.StdoutPipe()
		noErr(t, err)
		noErr(t, cmd.Start())
		lines, safe, kill := bufio.NewScanner(out), 0, rand.IntN(40)
		for n := 0; lines.Scan(); n++ {
			if _, err := fmt.Sscan(lines.Text(), &safe); err != nil {
				t.Fatalf("the writer says %q", lines.Text())
			}
			if n == kill {
				noErr(t, cmd.Process.Kill()) // it goes on until the signal is there
			}
		}
		_ = cmd.Wait()
		cancel()
		before := ids(t, dir)
		noErr(t, open(t, dir).Close())
		after := ids(t, dir)
		if !slices.Equal(before, after) || len(after) < safe || after[len(after)-1] != int64(len(after)) {
			t.Errorf("round %d: %d tasks were safe, %d could be read, %d are there: %v", round, safe, len(before), len(after), after)
		}
		if len(files(t, dir, partEnd))+len(files(t, dir, disk.DraftEnd)) != 0 {
			t.Errorf("round %d: %v", round, files(t, dir, ""))
		}
	}
}
