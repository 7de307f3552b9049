package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// View is what a round sees in place of what lies on the host. The zero value is the
// host as it is.
type View struct {
	// Lower is a directory whose files Program.Dir shows, by an overlay: what is written
	// there lies in Dir for other processes too. Work is a directory beside Dir, for the
	// kernel. Both must be empty, and serve one round.
	Lower, Work string
	// Store is a directory that the round cannot change.
	Store string
}

// ErrView means that a round did not begin because its view could not be had.
var ErrView = errors.New("shim: the view of the round cannot be had")

// arrange mounts what the view of a round needs. The namespace of a round is a copy of that of the shim, or the same.
func (s *shim) arrange(dir string, v View) error {
	if v != (View{}) && !s.setup.mayMount() {
		return errors.New("the rounds have no mount namespace of their own")
	}
	if v.Lower != "" {
		if err := s.privileged(func() error { return s.show(dir, v) }); err != nil {
			return err
		}
	}
	if v.Store == "" || v.Store == s.store {
		return nil
	}
	return s.privileged(func() error { return s.protect(v.Store) })
}

// show mounts an overlay in place of that of an earlier round.
func (s *shim) show(dir string, v View) error {
	if s.shown != "" {
		_ = unix.Unmount(s.shown, unix.MNT_DETACH) // mostly it is gone with its directory
	}
	s.shown = ""
	err := overlay(v.Lower, dir, v.Work)
	if err == nil {
		s.shown = dir
	}
	return err
}

// protect makes a store read-only in place of that of another program.
func (s *shim) protect(store string) error {
	if s.store != "" {
		_ = unix.Unmount(s.store, unix.MNT_DETACH) // it may be gone
	}
	s.store = ""
	err := makeReadOnly(store)
	if err == nil {
		s.store = store
	}
	return err
}

// overlay shows the files of lower in dir. The directories are named by descriptors,
// since an option cannot hold every path. Nothing of dir is to survive the host, so the
// file system is not synced when the overlay goes.
func overlay(lower, dir, work string) error {
	options := []string{"volatile", "userxattr"}
	for key, path := range map[string]string{"lowerdir": lower, "upperdir": dir, "workdir": work} {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: path, Err: err}
		}
		defer func() { _ = unix.Close(fd) }()
		options = append(options, key+"=/proc/self/fd/"+strconv.Itoa(fd))
	}
	return mountError("overlay", dir, unix.Mount("overlay", dir, "overlay", 0, strings.Join(options, ",")))
}

// makeReadOnly makes a directory read-only in this namespace.
func makeReadOnly(dir string) error {
	if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return mountError("bind", dir, err)
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	err := unix.MountSetattr(unix.AT_FDCWD, dir, unix.AT_RECURSIVE, &readOnly)
	if err != nil {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
	return mountError("read-only", dir, err)
}

func mountError(what, dir string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mount (%s) at '%s': %w", what, dir, err)
}

// mounter starts a thread that keeps the right to mount, which the one that starts
// programs gives up.
func (s *shim) mounter() {
	s.asked = make(chan func())
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(ready)
		for f := range s.asked {
			f()
		}
	}()
	<-ready
}

// privileged runs f with the right to mount.
func (s *shim) privileged(f func() error) error {
	if s.asked == nil {
		return f()
	}
	done := make(chan error)
	s.asked <- func() { done <- f() }
	return <-done
}

// mayMount reports whether what the shim mounts is seen by its rounds alone.
func (s *setup) mayMount() bool { return s.Layer == PIDNamespace || s.Mounts }

// tryView finds out, in a directory made for it, whether a view can be had.
func (s *shim) tryView(dir string) error {
	lower := filepath.Join(dir, tryLower)
	return s.arrange(filepath.Join(dir, tryUpper), View{Lower: lower, Work: filepath.Join(dir, tryWork), Store: lower})
}

// What is in the directory of a try.
const tryLower, tryUpper, tryWork = "lower", "upper", "work"

// tryDirectory makes a directory to try views in.
func tryDirectory(above string) (string, error) {
	dir, err := os.MkdirTemp(above, "tdf-try.*")
	for _, name := range []string{tryLower, tryUpper, tryWork} {
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, name), 0o700)
		}
	}
	return dir, err
}
