package workdir

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// sh runs commands in a directory.
func sh(t *testing.T, dir, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", commands)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", commands, err, out)
	}
	return string(out)
}

// program makes the directory of a small program.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	sh(t, dir, `echo script > run.sh; mkdir sub; echo data > sub/data; ln -s sub/data link; touch .tdf-manifest.json; mkfifo pipe
chmod 555 run.sh; chmod 444 sub/data; chmod 555 sub`)
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "sub"), 0o700) })
	return dir
}

// copied makes a copy as a round does.
func copied(t *testing.T, tree *Tree) *Dir {
	t.Helper()
	path := filepath.Join(t.TempDir(), "private")
	d := &Dir{}
	if err := errors.Join(os.Mkdir(path, 0o700), tree.Fill(path), d.Hold(path, tree)); err != nil {
		t.Fatal(err)
	}
	return d
}

func read(t *testing.T, dir string) *Tree {
	t.Helper()
	tree, err := Read(dir, nil)
	if err != nil || tree == nil {
		t.Fatalf("got %v, %v", tree, err)
	}
	return tree
}

const listing = `find . -printf '%P %y %m %l\n' | sort; cat run.sh sub/data`

// Small or not, a copy has the files, directories and links of the program, and its owner
// may write to all of them.
func TestCopy(t *testing.T) {
	t.Parallel()
	const want = " d 700 \nlink l 777 sub/data\nrun.sh f 755 \nsub d 755 \nsub/data f 644 \nscript\ndata\n"
	dir := program(t)
	if got := sh(t, copied(t, read(t, dir)).Path(), listing); got != want {
		t.Errorf("the small copy is %q", got)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := errors.Join(os.Mkdir(large, 0o700), Copy(t.Context(), dir, large)); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, large, listing); got != want {
		t.Errorf("the copy is %q", got)
	}
}

func TestCopyStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if err := Copy(ctx, program(t), t.TempDir()); !errors.Is(err, why) {
		t.Error(err)
	}
	if err := Copy(t.Context(), program(t), "/no/such"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What is not small is not kept in memory.
func TestLarge(t *testing.T) {
	t.Parallel()
	for _, commands := range []string{"head -c 1048577 /dev/zero > f", "for i in $(seq 17); do touch f$i; done"} {
		dir := t.TempDir()
		sh(t, dir, commands)
		if tree, err := Read(dir, nil); tree != nil || err != nil {
			t.Errorf("%s: %v, %v", commands, tree, err)
		}
	}
	if tree, err := Read("/no/such", nil); tree != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, %v", tree, err)
	}
}

// spoilt are what a round can do to its copy beside adding to it.
var spoilt = map[string]string{
	"a file written":  "chmod u+w run.sh; printf SCRIPT > run.sh",
	"a file replaced": "cp run.sh x; mv -f x run.sh",
	"a file gone":     "rm -f run.sh",
	"a file's mode":   "chmod 700 run.sh",
	"a hard link":     "ln run.sh ../stolen; rm -f ../stolen",
	"another in sub":  "touch sub/x",
	"one of sub gone": "rm -f sub/data",
	"sub replaced":    "mv sub ../sub; cp -a ../sub sub",
	"another link":    "ln -sfn run.sh link",
	"its own mode":    "chmod 755 .",
}

// Nothing of a round is in the directory of the next one: what was added is removed, and
// one with other changes is not kept, at once and later.
func TestRestore(t *testing.T) {
	t.Parallel()
	tree := read(t, program(t))
	for _, settled := range []bool{false, true} {
		for what, commands := range spoilt {
			d := copied(t, tree)
			if settled {
				wait.Eventually(t, time.Minute, func() bool { return d.Clean() && d.Untouched() && d.files[0].settled }, "it is settled")
			}
			sh(t, d.Path(), commands)
			if d.Clean() || d.Restore(false, remove.In) {
				t.Errorf("%s, settled %v: kept", what, settled)
			}
		}
		d := copied(t, tree)
		before := sh(t, d.Path(), listing)
		sh(t, d.Path(), "mkdir -p a/b; touch a/b/c .d; ln -s / root; mkfifo p; chmod 0 a")
		if d.Clean() {
			t.Error("what was added is not seen")
		}
		if d.Restore(false, func(*os.File, string) error { return errors.New("busy") }) {
			t.Error("what could not be removed is kept")
		}
		if !d.Restore(false, remove.In) || !d.Clean() {
			t.Error("what was added is not removed")
		}
		if after := sh(t, d.Path(), listing); after != before {
			t.Errorf("it was %q and is %q", before, after)
		}
	}
}

// A change that has the times of the copy, as within one step of the clock, is seen by
// reading.
func TestSameTimes(t *testing.T) {
	t.Parallel()
	d := copied(t, read(t, program(t)))
	for i := range d.files {
		if k := &d.files[i]; strings.HasSuffix(k.path, "run.sh") {
			if err := os.WriteFile(k.path, bytes.ToUpper([]byte("script\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := unix.Lstat(k.path, &k.then); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d.Clean() || d.Restore(false, remove.In) {
		t.Error("kept")
	}
}

// A program put there by hand is read again once it has changed.
func TestCurrent(t *testing.T) {
	t.Parallel()
	for i, change := range []string{"echo more > run.sh", "touch sub/x", "ln -sfn x link", "chmod 700 run.sh", "rm -f sub/data", "touch new"} {
		dir := program(t)
		sh(t, dir, "chmod 700 sub; chmod 600 run.sh sub/data")
		tree := read(t, dir)
		if tree.Current() {
			t.Error("a moment ago it may have had the same times")
		}
		wait.Eventually(t, time.Minute, func() bool {
			again, err := Read(dir, tree)
			return err == nil && again == tree && tree.Current()
		}, "program %d is settled", i)
		if again, err := Read(dir, &Tree{}); again == tree || err != nil {
			t.Errorf("it is taken for another: %v", err)
		}
		if sh(t, dir, change); tree.Current() {
			t.Errorf("after %q it is the same", change)
		}
	}
}
