// Package spool keeps on disk what could not be delivered, so that it outlives
// its process, and is delivered once by one of them.
//
//	DIR/NAMESPACE/WORKER/lock             flock: one process delivers
//	DIR/NAMESPACE/WORKER/NAME.result      a line of JSON, then the data
//	DIR/NAMESPACE/WORKER/.tmp-*           being written, or left by a dead process
//
// Names are percent-encoded, so none can reach another directory. A file is
// written aside, made durable and renamed: it is absent or whole, also after a
// crash. What it holds means nothing to this package.
package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/disk"
)

const (
	lockFile   = "lock"
	tempPrefix = ".tmp-"
	ending     = ".result"
)

// Spool is the spool of one worker name on one host. It may be used by any
// number of goroutines.
type Spool struct {
	dir  string
	lock *os.File
	root *os.Root // needs no lock: files appear and go as a whole

	mu     sync.Mutex
	next   uint64 // order of the next entry
	closed bool
}

// Open opens the spool of a worker below dir, which is made if need be, for its
// owner only, as is everything in it. What a dead process was writing is
// removed. The error matches [ErrLocked] while another process of the same
// worker name has it open. Close releases it; so does the end of the process.
func Open(dir, namespace, worker string) (*Spool, error) {
	for _, name := range []string{namespace, worker} {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	dir, err := makeDir(dir, fileName(namespace), fileName(worker))
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	if err := private(root, dir); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	s := &Spool{dir: dir, root: root}
	if s.lock, err = lock(root, worker); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// makeDir makes dir and below it the others. What is above dir may be shared.
func makeDir(dir string, below ...string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("make spool directory: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("make spool directory: %w", err)
	}
	dir = filepath.Join(append([]string{dir}, below...)...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make spool directory: %w", err)
	}
	return dir, nil
}

// private refuses a directory to which somebody else could write: an entry is reported
// as it stands there.
func private(root *os.Root, dir string) error {
	info, err := root.Stat(".")
	if err != nil {
		return fmt.Errorf("look at the spool: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: '%s' (%s) does not belong to this worker's user alone: change its owner and mode, or the spool_dir",
			ErrNotPrivate, dir, info.Mode())
	}
	return nil
}

// Dir is the directory that holds the entries.
func (s *Spool) Dir() string { return s.dir }

// Close releases the spool; the entries stay. A second call does nothing.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.root.Close(), disk.Unlock(s.lock))
}

// use checks that the spool is open.
func (s *Spool) use() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return nil
}

// order gives the place of a new entry behind all others.
func (s *Spool) order() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, ErrClosed
	}
	s.next++
	return s.next - 1, nil
}

// lock takes the file lock. The kernel frees it when its holder dies.
func lock(root *os.Root, worker string) (*os.File, error) {
	file, err := root.OpenFile(lockFile, os.O_CREATE|os.O_RDWR|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock spool: %w", err)
	}
	err = disk.Lock(file)
	if err == nil {
		return file, nil
	}
	if errors.Is(err, disk.ErrLocked) {
		err = fmt.Errorf("%w: worker '%s' runs on this host already: stop it, or give this one another name or spool_dir",
			ErrLocked, worker)
	}
	return nil, errors.Join(err, file.Close())
}

// sweep removes what dead processes were writing and finds the order of the
// next entry.
func (s *Spool) sweep() error {
	files, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("look into spool: %w", err)
	}
	for _, file := range files {
		switch name := file.Name(); {
		case isTemp(name) && file.Type().IsRegular():
			if err := s.root.Remove(name); err != nil {
				return fmt.Errorf("sweep spool: %w", err)
			}
		case isEntry(name):
			if h, err := s.read(name, nil); err == nil { // All tells of the others
				s.next = max(s.next, h.Order+1)
			}
		}
	}
	return nil
}

const (
	// maxName is the longest name of an entry, in bytes.
	maxName = 1024
	// maxFile is the longest file name made of a name, in bytes: with its ending
	// it stays below the 255 of the usual file systems.
	maxFile = 200
)

func checkName(name string) error {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("%w: %.60q: use 1 to %d bytes of UTF-8", ErrInvalidName, name, maxName)
	}
	return nil
}

// fileName percent-encodes a name. The rest of a long one is replaced by a
// hash of the whole, as file systems have no room for three times 128 bytes.
func fileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plain(c) || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() <= maxFile {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	digest := "~" + hex.EncodeToString(sum[:])
	return b.String()[:maxFile-len(digest)] + digest
}

// isEntry says whether a file may hold an entry.
func isEntry(file string) bool {
	return strings.HasSuffix(file, ending) && !isTemp(file)
}

func isTemp(file string) bool { return strings.HasPrefix(file, tempPrefix) }

func plain(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Errors that callers may want to tell apart, matched with errors.Is.
var (
	// ErrLocked means that another process has the same spool open.
	ErrLocked = errors.New("spool is in use by another process")
	// ErrClosed means that the spool was closed.
	ErrClosed = errors.New("spool is closed")
	// ErrNotPrivate means that others could write to the spool.
	ErrNotPrivate = errors.New("spool is not private")
	// ErrInvalidName means a name that no entry can have.
	ErrInvalidName = errors.New("invalid spool name")
)

// DamagedError is about a file of the spool that is no whole entry. It stays
// where it is, for somebody to look at.
type DamagedError struct {
	// Path is the file's, Problem what is wrong with it.
	Path, Problem string
	// Err is the cause, possibly nil.
	Err error
}

// Error names path, problem and remedy.
func (e *DamagedError) Error() string {
	text := fmt.Sprintf("spool file '%s' %s", clean.Line(e.Path, 0), e.Problem)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + ": it is left alone, look at it and remove it"
}

// Unwrap gives the cause.
func (e *DamagedError) Unwrap() error { return e.Err }
