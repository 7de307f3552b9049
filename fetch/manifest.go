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

// readManifest reports found=false without an error if there is none, or if it
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
		err = fmt.Errorf("'%s' is no regular file", name)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, maxManifest))
}

// matches compares what is installed with what a task wants.
func (m *manifest) matches(src Source) error {
	if m.Source != src.Location {
		return &ConflictError{Program: m.Program, Field: "source", Installed: redact(m.Source), Wanted: redact(src.Location)}
	}
	if src.SHA256 != "" && m.SHA256 != src.SHA256 {
		return &ConflictError{Program: m.Program, Field: "sha256", Installed: m.SHA256, Wanted: src.SHA256}
	}
	return nil
}

// present says whether program is there and is what src wants. False without
// an error means that it has to be fetched.
func (f *Fetcher) present(program string, src Source) (bool, error) {
	dir := filepath.Join(f.opts.Dir, program)
	// Asked before each round, it costs two looks at inodes.
	info, err := os.Stat(filepath.Join(dir, manifestFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look at manifest of program '%s': %w", program, err)
	}
	if err == nil {
		m, err := f.known(program, info)
		if err != nil {
			return false, err
		}
		if m != nil {
			return m.installed(os.DirFS(dir), src)
		}
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

// installed reports whether what is installed is what a task wants, and can be run: a program that removed its own run.sh
// is installed again.
func (m *manifest) installed(tree fs.FS, src Source) (bool, error) {
	if err := m.matches(src); err != nil {
		return false, err
	}
	return runnable(tree, m.Program) == nil, nil
}

func handMade(dir, program string, src Source) (bool, error) {
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
	dir := filepath.Join(f.opts.Dir, program)
	_, found, err := readManifest(dir, program)
	return err == nil && !found && !f.opts.RequirePinned && runnable(os.DirFS(dir), program) == nil
}
