package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/task"
)

// manifestFile lies in an installed program's directory; archives must not
// hold an entry of that name.
const manifestFile = ".tdf-manifest.json"

const manifestVersion = 1

// maxManifest is more than a manifest can be long, in bytes.
const maxManifest = 64 << 10

// manifest remembers where an installed program came from.
type manifest struct {
	Version int       `json:"version"`
	Program string    `json:"program"`
	Source  string    `json:"source"`
	SHA256  string    `json:"sha256"`
	Bytes   int64     `json:"bytes"`
	Fetched time.Time `json:"fetched"`
}

// readManifest reports found=false without an error if the file is missing, or if it
// is a copy of another program's: then the directory was put there by hand.
func readManifest(dir, program string) (m *manifest, found bool, err error) {
	file := filepath.Join(dir, manifestFile)
	text, err := readPlain(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read manifest: %w", err)
	}
	m = &manifest{}
	if err := json.Unmarshal(text, m); err != nil || m.Version < 1 || m.Source == "" {
		return nil, false, fmt.Errorf("manifest of program '%s' cannot be read: remove the program's directory to fetch it anew", program)
	}
	return m, m.Program == program, nil
}

// readPlain reads a small file, without waiting if it is no file: who has filled a
// program's directory by hand need not be a friend.
func readPlain(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("'%s' is not a regular file", name)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, maxManifest))
}

// installed reports whether a version is there. One whose run.sh somebody has removed is installed again. It looks into a
// directory once: an installation replaces it, and what is removed from it changes its time.
func (f *Fetcher) installed(program, hash string) bool {
	dir := filepath.Join(f.opts.Dir, program, hash)
	now, err := os.Lstat(dir)
	if err != nil {
		return false
	}
	f.mu.Lock()
	known := f.complete[dir]
	f.mu.Unlock()
	if known != nil && os.SameFile(known, now) && known.ModTime().Equal(now.ModTime()) {
		return true
	}
	m, found, err := readManifest(dir, program)
	if err != nil || !found || m.SHA256 != hash || runnable(os.DirFS(dir), program) != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.complete[dir] = now
	return true
}

// runFile is the file of a program that is executed.
const runFile = string(task.FormatScript)

// runnable checks run.sh of a program in tree, following links inside it.
func runnable(tree fs.FS, program string) error {
	if program == uploads {
		return nil
	}
	fi, err := fs.Stat(tree, runFile)
	switch {
	case err != nil:
		return fmt.Errorf("%w: program './%s/%s' does not exist", ErrNotRunnable, program, runFile)
	case !fi.Mode().IsRegular():
		return fmt.Errorf("%w: program './%s/%s' is not a regular file", ErrNotRunnable, program, runFile)
	case fi.Mode()&0o111 == 0:
		return fmt.Errorf("%w: program './%s/%s' is not executable (mode %#o): chmod +x it, before packing if it is in an archive",
			ErrNotRunnable, program, runFile, fi.Mode().Perm())
	}
	return nil
}

// printable makes text from elsewhere fit for one line of a log.
func printable(s string) string { return clean.Line(s, 300) }

// redact is printable for a source, without what may be credentials.
func redact(s string) string { return printable(clean.Source(s)) }
