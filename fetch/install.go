package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	for _, dir := range []string{lockDir, stageDir} {
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
	return nil
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
// place. Before the rename the program is absent, after it complete.
func (f *Fetcher) install(s *stage, m manifest) error {
	m.Fetched = time.Now().UTC().Truncate(time.Second)
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
	if err := f.moveAside(s, m.Program); err != nil {
		return err
	}
	if err := f.root.Rename(s.name+"/"+stagedTree, m.Program); err != nil {
		return fmt.Errorf("install program: %w", err)
	}
	f.at("installed")
	return disk.SyncIn(f.root, ".")
}

// moveAside clears the place of a broken installation: rename does not replace
// a directory that is not empty. What others have put there stays.
func (f *Fetcher) moveAside(s *stage, program string) error {
	err := f.root.Remove(program)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if m, err := f.manifest(program); err != nil || m == nil {
		return errors.Join(err, fmt.Errorf("directory of program '%s' was filled by someone else during the fetch: "+
			"complete or remove it", program))
	}
	if err := f.root.Rename(program, s.name+"/"+stagedOld); err != nil {
		return fmt.Errorf("move broken program aside: %w", err)
	}
	return nil
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
