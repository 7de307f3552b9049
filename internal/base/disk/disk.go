// Package disk tells how much space file systems have left, so that a worker
// stops claiming before programs fail for want of it; writes whole files that
// outlast a crash; makes files without a name; and locks files between processes.
package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Full reports whether err comes from a full disk or an exceeded quota.
func Full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// Reserved begins the names of TDF's own files in directories that hold a program: its
// manifest, and what a worker puts into the directory of a round.
const Reserved = ".tdf-"

// Guard watches that some paths keep a reserve of free space. It may be used by any
// number of goroutines.
type Guard struct {
	// Paths are looked at, one for each file system.
	Paths []string
	// Reserve is the least free space, in bytes; 0 means that any will do.
	Reserve uint64

	began time.Time
	// good is until when, since began, a good answer counts.
	good atomic.Int64
}

// fresh is for how long a good answer counts: rounds may be shorter than that.
const fresh = 10 * time.Millisecond

// NewGuard makes a Guard that asks each file system of paths once. A path that
// is not there yet counts as the nearest directory above it that is; an empty
// one is left out. The error says which path cannot be looked at.
func NewGuard(reserve uint64, paths ...string) (*Guard, error) {
	g := &Guard{Reserve: reserve, began: time.Now()}
	var seen []filesystem
	for _, path := range paths {
		if path == "" {
			continue
		}
		there, where, err := locate(path)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(seen, where) {
			seen = append(seen, where)
			g.Paths = append(g.Paths, there)
		}
	}
	return g, nil
}

// filesystem tells file systems apart. A quota on a directory shows as another
// size on the same device.
type filesystem struct{ device, blocks uint64 }

// locate finds the file system of path, and the existing directory that stands
// for it.
func locate(path string) (there string, where filesystem, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return "", where, fmt.Errorf("make path absolute: %w", err)
	}
	info, err := os.Stat(path)
	for errors.Is(err, fs.ErrNotExist) && path != "/" {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return "", where, fmt.Errorf("look at file system: %w", err)
	}
	stat, err := statfs(path)
	if err != nil {
		return "", where, err
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		where.device = sys.Dev
	}
	where.blocks = stat.Blocks
	return path, where, nil
}

// Check returns a [FullError] for the first path with less free space than
// Reserve, or nil, which it repeats for 10 ms without looking. It costs one system
// call a path. Other errors mean that a path cannot be looked at any more.
func (g *Guard) Check() error {
	now := time.Since(g.began)
	if g.Reserve == 0 || now < time.Duration(g.good.Load()) {
		return nil
	}
	for _, path := range g.Paths {
		free, err := Free(path)
		if err != nil {
			return err
		}
		if free < g.Reserve {
			return &FullError{Path: path, Free: free, Reserve: g.Reserve}
		}
	}
	g.good.Store(int64(now + fresh))
	return nil
}

// Unknown is the free space of a file system that does not count its space.
const Unknown = math.MaxUint64

// root is asked for once: it is looked how much is free after each round.
var root = os.Geteuid() == 0

// Free returns the bytes that this process may still write to the file system
// of path; for root these include what is set aside for root. It is [Unknown]
// where the file system has no size. The error wraps the system's.
func Free(path string) (bytes uint64, err error) {
	stat, err := statfs(path)
	if err != nil {
		return 0, err
	}
	if stat.Blocks == 0 {
		return Unknown, nil
	}
	blocks := stat.Bavail
	if root {
		blocks = stat.Bfree
	}
	return blocks * uint64(stat.Bsize), nil
}

func statfs(path string) (unix.Statfs_t, error) {
	var stat unix.Statfs_t
	for {
		err := unix.Statfs(path, &stat)
		if err == nil {
			return stat, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return stat, fmt.Errorf("free space of '%s': %w", path, err)
		}
	}
}

// FullError says that a file system has less free space than the reserve.
type FullError struct {
	// Path lies on the file system.
	Path string
	// Free and Reserve are in bytes.
	Free, Reserve uint64
}

// Error names path, free space, reserve and the setting.
func (e *FullError) Error() string {
	return fmt.Sprintf("the disk of '%s' has %s free, less than the reserve of %s: "+
		"make room, or lower [worker] disk_reserve", e.Path, SizeText(e.Free), SizeText(e.Reserve))
}

// SizeText writes a size for people, with one decimal above 1 KiB.
func SizeText(n uint64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d bytes", n)
	}
	size, unit := float64(n)/step, 0
	for size >= step && unit < 3 {
		size, unit = size/step, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGT"[unit])
}

// DraftEnd ends the name of what [WriteFile] is writing. A draft that is left after a crash is written over the next time.
const DraftEnd = ".tmp"

// WriteFile writes text to a file: afterwards, and after a crash at any moment, the file of that name is absent, the
// old one or the new one, never a part. When it returns nil the new one is on the disk. It replaces a file with another mode.
// Two calls for one name must not overlap. The error wraps the system's.
func WriteFile(name string, text []byte, mode fs.FileMode) error {
	draft := name + DraftEnd
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(draft, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return SyncDir(filepath.Dir(name))
}

// WriteNew writes the parts to a new file below root, as durable as what [WriteFile] writes but for its name, which
// takes a [SyncIn]. If it fails the file may be there.
func WriteNew(root *os.Root, name string, mode fs.FileMode, parts ...[]byte) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err = f.Write(part); err != nil {
			break
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// SyncIn is [SyncDir] for a directory below root.
func SyncIn(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SyncDir puts on the disk which files a directory has: without it a crash may undo what was made, renamed or removed there.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ErrLocked means that another process has the lock.
var ErrLocked = errors.New("another process has locked it")

// Lock locks a file until [Unlock], or until this process ends. The error is
// [ErrLocked], or wraps that of a file system that has no locks.
func Lock(file *os.File) error { return lock(file, unix.LOCK_EX|unix.LOCK_NB) }

// LockShared locks a file together with others that share it. It waits while somebody holds it alone.
func LockShared(file *os.File) error { return lock(file, unix.LOCK_SH) }

func lock(file *os.File, how int) error {
	for {
		switch err := unix.Flock(int(file.Fd()), how); {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		case err != nil:
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		default:
			return nil
		}
	}
}

// Unlock unlocks a file and closes it. Closing alone is not enough while a
// program is being started, which has the file until it runs.
func Unlock(file *os.File) error {
	_ = unix.Flock(int(file.Fd()), unix.LOCK_UN) // where there are no locks there was none
	return file.Close()
}

// Scratch is a file without a name, which is gone when it is closed. It knows the hash and the size of what was written to it.
type Scratch struct {
	*os.File

	sum  hash.Hash
	size int64
}

// NewScratch makes a scratch file in a directory, "" for that of temporary files. The caller closes it.
func NewScratch(dir string) (*Scratch, error) {
	file, err := os.CreateTemp(dir, "tdf-scratch-")
	if err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("scratch file: %w", err), file.Close())
	}
	return &Scratch{File: file, sum: sha256.New()}, nil
}

// Write implements io.Writer.
func (s *Scratch) Write(p []byte) (int, error) {
	n, err := s.File.Write(p)
	s.size += int64(n)
	_, _ = s.sum.Write(p[:n]) // it never fails
	return n, err
}

// WriteString implements io.StringWriter, and ReadFrom io.ReaderFrom, in the place of the file, which would not count.
func (s *Scratch) WriteString(text string) (int, error) { return s.Write([]byte(text)) }

// ReadFrom implements io.ReaderFrom.
func (s *Scratch) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{s}, r)
}

// SHA256 is the hash of what was written, in hex.
func (s *Scratch) SHA256() string { return hex.EncodeToString(s.sum.Sum(nil)) }

// Size is how many bytes were written.
func (s *Scratch) Size() int64 { return s.size }
