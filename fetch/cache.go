package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/task"
)

// ErrRemoved means that a version was removed before it could be held. The remedy is to ask
// [Fetcher.Ensure] for it again.
var ErrRemoved = errors.New("the version was removed meanwhile, to make room for another one")

// Hold keeps a version from being removed to make room for others (see Options.CacheBytes),
// in this process and others, until release is called or the process ends. The error matches
// [ErrRemoved] if it is gone already. A program that was put there by hand is never removed.
func (v Version) Hold() (release func(), err error) {
	if v.SHA256 == "" {
		return func() {}, nil
	}
	dir, err := os.Open(v.Dir)
	if err != nil {
		return nil, v.notHeld(err)
	}
	err = disk.LockShared(dir)
	if err == nil {
		err = v.used(dir)
	}
	if err != nil {
		_ = dir.Close()
		return nil, v.notHeld(err)
	}
	return func() {
		_ = v.used(dir) // it was used until now
		_ = disk.Unlock(dir)
	}, nil
}

func (v Version) notHeld(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrRemoved
	}
	return fmt.Errorf("hold version %s of a program: %w", v.SHA256, err)
}

// used says that the version is used now, by the time of its manifest. It fails if the version is no longer that in dir.
func (v Version) used(dir *os.File) error {
	held, err := dir.Stat()
	if err != nil {
		return err
	}
	now, err := os.Lstat(v.Dir)
	if err == nil && !os.SameFile(held, now) {
		err = fs.ErrNotExist
	}
	if err == nil {
		// Of a directory that another user has filled the time stays.
		_ = os.Chtimes(filepath.Join(v.Dir, manifestFile), time.Time{}, time.Now())
	}
	return err
}

// stored is a version in the program directory.
type stored struct {
	extent

	program, hash, dir string
	used               time.Time
}

// trim removes the versions that were used longest ago, until the others have room. The new one stays, as do those that
// somebody holds, and those of programs that are being fetched. What cannot be removed is left for the next time. The lock of
// the new one's program is held.
func (f *Fetcher) trim(program, hash string) {
	if f.opts.CacheBytes <= 0 {
		return
	}
	var all int64
	versions := f.versions()
	for i := range versions {
		versions[i].extent = f.extent(versions[i].dir)
		all += versions[i].bytes
	}
	slices.SortFunc(versions, func(a, b stored) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.hash, b.hash)) })
	for i := range versions {
		v := &versions[i]
		if all <= f.opts.CacheBytes {
			return
		}
		if v.hash != hash && f.remove(v, program) == nil {
			all -= v.bytes
		}
	}
}

// versions are those that a fetch has put there.
func (f *Fetcher) versions() (found []stored) {
	programs, _ := fs.ReadDir(f.root.FS(), ".") // what cannot be read is not removed
	for _, entry := range programs {
		program := entry.Name()
		if task.ValidProgram(program) != nil || !entry.IsDir() {
			continue
		}
		hashes, _ := fs.ReadDir(f.root.FS(), program)
		for _, version := range hashes {
			dir := filepath.Join(f.opts.Dir, program, version.Name())
			info, err := os.Lstat(filepath.Join(dir, manifestFile))
			if isHash(version.Name()) && version.IsDir() && err == nil {
				found = append(found, stored{program: program, hash: version.Name(), dir: dir, used: info.ModTime()})
			}
		}
	}
	return found
}

// extent is the room that a directory takes, and how many files it has.
type extent struct {
	bytes int64
	files int
}

// extent is that of a version, which never changes. Rounds do not wait while it is counted.
func (f *Fetcher) extent(dir string) extent {
	f.mu.Lock()
	known, ok := f.extents[dir]
	f.mu.Unlock()
	if ok {
		return known
	}
	counted := measure(dir, func(string) bool { return false })
	if _, err := os.Lstat(filepath.Join(dir, manifestFile)); err == nil { // else it was removed meanwhile
		f.mu.Lock()
		defer f.mu.Unlock()
		f.extents[dir] = counted
	}
	return counted
}

// measure counts what is in a directory, without those in it that are not to be counted.
func measure(dir string, without func(dir string) bool) (e extent) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // it is being removed
		case entry.IsDir() && without(path):
			return fs.SkipDir
		case !entry.IsDir():
			e.files++
		}
		if info, err := entry.Info(); err == nil {
			if sys, ok := info.Sys().(*syscall.Stat_t); ok {
				e.bytes += sys.Blocks * 512 // whatever the blocks of the file system are
			}
		}
		return nil
	})
	return e
}

var errHeld = errors.New("a slot runs it, or has run it last")

// remove takes a version away. The error is errHeld if somebody holds it, and disk.ErrLocked if its program is being fetched or
// removed. The lock of the program locked is held.
func (f *Fetcher) remove(v *stored, locked string) error {
	if v.program != locked {
		lock, err := f.tryFlock(v.program)
		if err != nil {
			return err
		}
		defer func() { _ = disk.Unlock(lock) }()
		defer func() { _ = f.unstage(v.program) }() // else its next fetch does
	}
	name, aside := v.program+"/"+v.hash, stageDir+"/"+v.program
	dir, err := f.root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = disk.Unlock(dir) }()
	if err := disk.Lock(dir); errors.Is(err, disk.ErrLocked) {
		return errHeld
	} else if err != nil {
		return err
	}
	if err := f.root.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	if err := f.root.Rename(name, aside+"/"+v.hash); err != nil {
		return err
	}
	f.forgotten(filepath.Join(f.opts.Dir, name))
	stage, err := f.root.Open(aside)
	if err != nil {
		return err
	}
	defer func() { _ = stage.Close() }() // nothing is written through it
	return remove.In(stage, v.hash)
}

// forgotten says that a version is gone.
func (f *Fetcher) forgotten(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.complete, dir)
	delete(f.extents, dir)
}
