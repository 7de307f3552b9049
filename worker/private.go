package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/sandbox/remove"
)

// sweepPrivate makes the directory of the private directories, and removes what
// an earlier incarnation of this worker has left in it.
func (w *Worker) sweepPrivate() {
	if err := w.ensurePrivateDir(); err != nil {
		w.log.Warn("cannot make private directories; programs cannot be run", "error", err)
		return
	}
	if f, ok := w.opts.Programs.(*fetch.Fetcher); ok {
		if err := f.Abandon(w.life, w.privateDir(), w.opts.container.AsOwner); err != nil {
			w.log.Warn("could not remove all returned files that were on their way; leaving them", "error", err)
		}
	}
	entries, err := os.ReadDir(w.privateDir())
	if err != nil {
		w.log.Warn("could not look for left-over private directories", "error", err)
		return
	}
	for _, e := range entries {
		dir := filepath.Join(w.privateDir(), e.Name())
		// What is mounted there now was not mounted by a round of this incarnation.
		err := w.mounts.Free(dir, w.mounts.Now())
		if err == nil {
			err = remove.Tree(dir)
		}
		if err != nil {
			w.log.Error("could not remove a left-over private directory; leaving it", "error", err, "directory", dir)
		}
	}
}

// removePrivateDir is for the end; what is not empty stays for the next start.
func (w *Worker) removePrivateDir() {
	if w.opts.container == nil {
		return
	}
	if err := os.Remove(w.privateDir()); err != nil {
		w.log.Debug("could not remove the directory of private directories", "error", err)
	}
}

// privateHome holds the private directories of a worker's rounds.
type privateHome struct {
	mu   sync.Mutex
	dir  string
	lock *os.File // nil where directories cannot be locked
}

// privateDir holds the private directories of this worker's rounds. It belongs to
// the worker alone, so that no program can put something else in the place of
// one of them. No other worker, namespace or Redis has the same. It is empty
// before it was made.
func (w *Worker) privateDir() string {
	w.private.mu.Lock()
	defer w.private.mu.Unlock()
	return w.private.dir
}

// ensurePrivateDir makes it, or makes sure that what is there is ours. Where the
// Redis of another network has the same address, a living worker may have the
// same names: its directory is locked, so this worker takes the next one.
func (w *Worker) ensurePrivateDir() error {
	part := func(s string) string { return strings.ReplaceAll(url.PathEscape(s), ".", "%2E") }
	first := filepath.Join(w.opts.TempDir, "tdf."+w.site.Mark+"."+part(w.site.Namespace)+"."+part(w.opts.Name))
	w.private.mu.Lock()
	defer w.private.mu.Unlock()
	if w.private.held() {
		return nil // another slot has just made it again
	}
	for n, dir := 0, first; ; {
		if err := makePrivateHome(dir); err != nil {
			return err
		}
		lock, err := lockDirectory(dir)
		switch {
		case errors.Is(err, disk.ErrLocked):
			n++
			dir = first + "." + strconv.Itoa(n)
			continue
		case errors.Is(err, fs.ErrNotExist): // removed by a worker that has ended
			continue
		case err != nil:
			return err
		}
		w.private.close()
		w.private.dir, w.private.lock = dir, lock
		return nil
	}
}

// held reports whether the directory is there and locked.
func (p *privateHome) held() bool {
	if p.lock == nil {
		return false
	}
	mine, err := p.lock.Stat()
	there, err2 := os.Lstat(p.dir)
	return err == nil && err2 == nil && os.SameFile(mine, there)
}

// close gives the lock up.
func (p *privateHome) close() {
	if p.lock != nil {
		_ = disk.Unlock(p.lock) // nothing was written
		p.lock = nil
	}
}

// lockDirectory locks a directory for as long as this process lives. It returns
// nil where the file system has no locks.
func lockDirectory(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	held, err := file.Stat()
	if err == nil {
		err = disk.Lock(file)
	}
	if err != nil {
		_ = file.Close()
		if errors.Is(err, disk.ErrLocked) {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		return nil, nil //nolint:nilnil // without locks there is nothing to hold
	}
	if there, err := os.Lstat(dir); err != nil || !os.SameFile(held, there) {
		_ = file.Close()
		return nil, fs.ErrNotExist
	}
	return file, nil
}

// makePrivateHome makes the directory, or makes sure that what is there is ours.
func makePrivateHome(dir string) error {
	err := os.Mkdir(dir, 0o711)
	if err == nil {
		return os.Chmod(dir, 0o711) // whatever the umask: a user of run_as must get through
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is there (%s) and does not belong to this worker alone; remove it, or choose another [worker] temp_dir",
			dir, info.Mode())
	}
	return nil
}

// leavePrivateDir lets another worker of these names have it.
func (w *Worker) leavePrivateDir() {
	w.private.mu.Lock()
	defer w.private.mu.Unlock()
	w.private.close()
}
