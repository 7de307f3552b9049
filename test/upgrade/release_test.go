package upgrade

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// release is a set of built programs.
type release int

const (
	previous release = iota
	current
)

// tree is the root of the repository.
const tree = "../.."

// builds are the directories of the programs of both releases.
type builds [2]string

// build makes both releases, or skips the test where the history is not there.
func build(t *testing.T) builds {
	t.Helper()
	source := t.TempDir()
	checkout(t, previousCommit(t), source)
	var b builds
	for r, dir := range map[release]string{previous: source, current: tree} {
		b[r] = t.TempDir()
		compile(t, dir, b[r])
	}
	return b
}

// compile builds as "make build" does: the programs as they are shipped, and most
// of it comes from the cache of Go.
func compile(t *testing.T, dir, bin string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-buildvcs=false", "-o", bin+string(filepath.Separator),
		"./cmd/tdf-server", "./cmd/tdf-worker", "./cmd/tdf-manager", "./test/chaos/handler")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", dir, err, out)
	}
}

// previousCommit is what previous.txt says.
func previousCommit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("previous.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	t.Fatal("previous.txt names no commit")
	return ""
}

// checkout unpacks the tree of a commit.
func checkout(t *testing.T, commit, to string) {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "git", "-C", tree, "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		t.Skipf("building the previous release needs git and its commit %.7s (git fetch --unshallow)", commit)
	}
	// From the root: in a directory git archive takes only what is below it.
	cmd := exec.CommandContext(t.Context(), "git", "-C", tree, "archive", "--format=tar", commit)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git archive: %v\n%s", err, &errs)
	}
	if err := unpack(out, to); err != nil {
		t.Fatalf("git archive: %v", err)
	}
}

func unpack(archive []byte, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer root.Close()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = place(root, h, r)
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
}

func place(root *os.Root, h *tar.Header, r io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(h.Name, 0o700)
	case tar.TypeReg:
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return root.WriteFile(h.Name, data, 0o600)
	default: // the header with the commit, a symbolic link: nothing to build from
		return nil
	}
}
