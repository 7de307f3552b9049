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

// matches compares what is installed with what a task wants. Nothing is replaced: other tasks may be running it.
func (m *manifest) matches(src task.Source) error {
	conflict := func(field, installed, wanted string) error {
		return fmt.Errorf("program '%s' is already installed with %s '%s', the task wants '%s': "+
			"use another program name or remove the program's directory", m.Program, field, installed, wanted)
	}
	if m.Source != src.Location {
		return conflict("source", redact(m.Source), redact(src.Location))
	}
	if src.SHA256 != "" && m.SHA256 != src.SHA256 {
		return conflict("sha256", m.SHA256, src.SHA256)
	}
	return nil
}

// present says whether program is there and is what src wants. False without
// an error means that it has to be fetched.
func (f *Fetcher) present(program string, src task.Source) (bool, error) {
	dir := filepath.Join(f.opts.Dir, program)
	m, err := f.manifest(program)
	if err != nil {
		return false, err
	}
	if m != nil {
		// A program that removed its own run.sh is installed again.
		err := m.matches(src)
		return err == nil && runnable(os.DirFS(dir), program) == nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for program '%s': %w", program, err)
	}
	return handMade(dir, program, src)
}

func handMade(dir, program string, src task.Source) (bool, error) {
	if err := runnable(os.DirFS(dir), program); err != nil {
		return false, fmt.Errorf("%w (its directory is not empty and was not installed by a fetch: "+
			"complete or remove it)", err)
	}
	if src.SHA256 != "" {
		return false, fmt.Errorf("%w: program '%s' was put there by hand, so its content cannot be compared with the pin: "+
			"remove its directory or the pin", ErrUnpinned, program)
	}
	return true, nil
}

// byHand says whether a hand-made program is there, for tasks without source.
func (f *Fetcher) byHand(program string) bool {
	m, err := f.manifest(program)
	return err == nil && m == nil && !f.opts.RequirePinned && runnable(os.DirFS(filepath.Join(f.opts.Dir, program)), program) == nil
}

// Hash returns the SHA-256, as lower-case hex, of the file an installed program
// was made from, as its manifest has it; empty for a program without one, which
// was put there by hand or is not there. The program is not read: asked before
// each round, it costs one look at the manifest's inode.
func (f *Fetcher) Hash(program string) (string, error) {
	if err := task.ValidProgram(program); err != nil {
		return "", err
	}
	m, err := f.manifest(program)
	if err != nil || m == nil {
		return "", err
	}
	return m.SHA256, nil
}

// knownManifest is a manifest that was read, and the file that it was read from.
type knownManifest struct {
	file os.FileInfo
	*manifest
}

// manifest is the manifest of an installed program. It is nil for a program without
// one, or with a copy of another program's. It is remembered for as long as it is the
// same file: an installation replaces the whole directory.
func (f *Fetcher) manifest(program string) (*manifest, error) {
	dir := filepath.Join(f.opts.Dir, program)
	info, err := os.Lstat(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // none is a good answer
	}
	if err != nil {
		return nil, fmt.Errorf("look at manifest of program '%s': %w", program, err)
	}
	f.mu.Lock()
	known, ok := f.manifests[program]
	f.mu.Unlock()
	if ok && os.SameFile(known.file, info) && known.file.ModTime().Equal(info.ModTime()) {
		return known.manifest, nil
	}
	m, found, err := readManifest(dir, program)
	if err != nil || !found {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manifests[program] = knownManifest{info, m}
	return m, nil
}

// runFile is the file of a program that is executed.
const runFile = string(task.FormatScript)

// runnable checks run.sh of a program in tree, following links inside it.
func runnable(tree fs.FS, program string) error {
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
