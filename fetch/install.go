package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/task"
)

// The fetcher's own corner of the program directory. Program names start with
// a letter or digit, so none can reach into it.
const (
	ownDir   = ".tdf"
	lockDir  = ownDir + "/lock"
	stageDir = ownDir + "/staging"
)

// Names inside a staging directory.
const (
	stagedFile = "file" // the download
	stagedTree = "tree" // what becomes the program directory
	stagedOld  = "old"  // a broken installation that is being replaced
)

// prepare makes the fetcher's directories and removes the staging directories
// of dead processes: those whose lock nobody holds.
func (f *Fetcher) prepare() error {
	for _, dir := range []string{lockDir, stageDir, seenDir} {
		if err := f.root.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("prepare program directory: %w", err)
		}
	}
	stale, err := fs.ReadDir(f.root.FS(), stageDir)
	if err != nil {
		return fmt.Errorf("look for stale staging: %w", err)
	}
	for _, entry := range stale {
		if task.ValidProgram(entry.Name()) != nil {
			continue
		}
		file, err := f.tryFlock(entry.Name())
		if err != nil {
			continue // being fetched right now
		}
		err = f.unstage(entry.Name())
		_ = disk.Unlock(file)
		// What something is mounted in keeps that program from being fetched, and no other.
		if err != nil && !errors.As(err, new(*remove.MountedError)) {
			return err
		}
	}
	return errors.Join(f.forget(), f.moveOld())
}

// forgetAfter is how long a source is remembered that no task has any more, such as an address signed for one of them.
const forgetAfter = 30 * 24 * time.Hour

// forget removes what was seen that long ago.
func (f *Fetcher) forget() error {
	entries, err := fs.ReadDir(f.root.FS(), seenDir)
	if err != nil {
		return fmt.Errorf("look for sources: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()) > forgetAfter {
			_ = f.root.Remove(seenDir + "/" + entry.Name()) // else the next start does
		}
	}
	return nil
}

// moveOld makes versions of programs that an older release has installed, as DIR/PROGRAM/run.sh with a manifest.
func (f *Fetcher) moveOld() error {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("look for programs: %w", err)
	}
	for _, entry := range entries {
		program := entry.Name()
		if task.ValidProgram(program) != nil || !entry.IsDir() {
			continue
		}
		m, ours, err := readManifest(filepath.Join(f.opts.Dir, program), program)
		if err != nil || !ours || !isHash(m.SHA256) {
			continue // not ours, or damaged: who uses it is told
		}
		file, err := f.tryFlock(program)
		if err != nil {
			continue // being fetched right now
		}
		err = f.moveVersion(program, m)
		_ = disk.Unlock(file)
		if err != nil {
			return fmt.Errorf("make program '%s' one of several versions: %w", program, err)
		}
	}
	return nil
}

func (f *Fetcher) moveVersion(program string, m *manifest) error {
	aside := stageDir + "/" + program
	if err := errors.Join(f.unstage(program), f.root.Rename(program, aside), f.root.Mkdir(program, 0o755)); err != nil {
		return err
	}
	if err := f.root.Rename(aside, program+"/"+m.SHA256); err != nil {
		return err
	}
	f.record(program, sighting{Source: m.Source, SHA256: m.SHA256})
	return disk.SyncIn(f.root, ".")
}

func isHash(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == sha256.Size
}

// stage is the staging directory of one fetch. Only the holder of a program's
// lock has one, so whatever is found in its place was left by a dead process.
type stage struct {
	program string
	name    string // below Options.Dir
	root    *os.Root
}

// unstage removes the staging directory of a program, if there is one.
func (f *Fetcher) unstage(program string) error {
	dir, err := f.root.Open(stageDir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // nothing is written through it
	if err := remove.In(dir, program); err != nil {
		return fmt.Errorf("remove stale staging: %w", err)
	}
	return nil
}

func (f *Fetcher) newStage(program string) (*stage, error) {
	name := stageDir + "/" + program
	if err := f.unstage(program); err != nil {
		return nil, err
	}
	if err := f.root.MkdirAll(name, 0o700); err != nil {
		return nil, fmt.Errorf("create staging directory: %w", err)
	}
	root, err := f.root.OpenRoot(name)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open staging directory: %w", err), f.unstage(program))
	}
	return &stage{program: program, name: name, root: root}, nil
}

// discard removes the stage. If it cannot, the next fetch of the program says why.
func (f *Fetcher) discard(s *stage, note func(string)) {
	_ = s.root.Close()
	if err := f.unstage(s.program); err != nil {
		note(err.Error())
	}
}

// install writes the manifest, makes the tree durable and renames it into
// place. Before the rename the version is absent, after it complete.
func (f *Fetcher) install(s *stage, m manifest) error {
	m.Fetched = time.Now().UTC()
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	mode := fs.FileMode(0o644)
	if clean.Source(m.Source) != m.Source {
		mode = 0o600 // it may hold a token
	}
	if err := disk.WriteNew(s.root, stagedTree+"/"+manifestFile, mode, text, []byte("\n")); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := syncDirs(s.root, stagedTree); err != nil {
		return fmt.Errorf("make program durable: %w", err)
	}
	f.at("synced")
	if err := f.root.Mkdir(m.Program, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("install program: %w", err)
	}
	version := m.Program + "/" + m.SHA256
	// Rename does not replace a directory that is not empty: what is there is broken.
	if err := f.root.Rename(version, s.name+"/"+stagedOld); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("move broken program aside: %w", err)
	}
	if err := f.root.Rename(s.name+"/"+stagedTree, version); err != nil {
		return fmt.Errorf("install program: %w", err)
	}
	f.at("installed")
	return errors.Join(disk.SyncIn(f.root, m.Program), disk.SyncIn(f.root, "."))
}

// syncDirs makes the names in all directories below name durable; the files
// were synced when they were written.
func syncDirs(root *os.Root, name string) error {
	return fs.WalkDir(root.FS(), name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return disk.SyncIn(root, path)
	})
}

// lockPoll is how often a lock held by another process is tried again; flock
// itself cannot be interrupted by a context.
const lockPoll = 20 * time.Millisecond

// enter waits until no other goroutine has the program, so that only one of them polls
// the file lock.
func (f *Fetcher) enter(ctx context.Context, program string) (leave func(), err error) {
	mine := make(chan struct{})
	for {
		f.mu.Lock()
		other := f.fetching[program]
		if other == nil {
			f.fetching[program] = mine
		}
		f.mu.Unlock()
		if other == nil {
			return func() { f.leave(program, mine) }, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (f *Fetcher) leave(program string, mine chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.fetching, program)
	close(mine)
}

// lock takes the program's lock against goroutines and processes. The kernel
// frees it when its holder dies.
func (f *Fetcher) lock(ctx context.Context, program string) (unlock func(), err error) {
	leave, err := f.enter(ctx, program)
	if err != nil {
		return nil, err
	}
	for {
		file, err := f.tryFlock(program)
		if err == nil {
			return func() { _ = disk.Unlock(file); leave() }, nil
		}
		if !errors.Is(err, disk.ErrLocked) {
			leave()
			return nil, err
		}
		select {
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// tryFlock takes the file lock or answers [disk.ErrLocked]. Lock files stay: to
// remove one while another process waits for it would make two locks of it.
func (f *Fetcher) tryFlock(program string) (*os.File, error) {
	file, err := f.root.OpenFile(lockDir+"/"+program, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock program '%s': %w", program, err)
	}
	if err = disk.Lock(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock program '%s': %w", program, err)
	}
	return file, nil
}
