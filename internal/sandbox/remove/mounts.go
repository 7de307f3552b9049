package remove

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Mounts is what is mounted in the mount namespace of this process. The zero value is
// ready; it may be used by any number of goroutines. A look costs one system call while
// nothing changes.
type Mounts struct {
	mu    sync.Mutex
	file  *os.File
	table *Table
}

// Table is what was mounted at one moment; two looks return the same one if the same was
// mounted. Nil stands for what cannot be known.
type Table struct {
	ids   map[int]bool
	mount []mount
}

type mount struct {
	id    int
	point string
}

// Now looks. A directory that was renamed, with a mount in it, is no change.
func (m *Mounts) Now() *Table { return m.look(false) }

// look reads the table if it has changed, or anew.
func (m *Mounts) look(anew bool) *Table {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		// Opened by package os, the runtime would wait for changes too, and the kernel
		// tells of a change once.
		fd, err := unix.Open("/proc/thread-self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil
		}
		m.file = os.NewFile(uintptr(fd), "mountinfo")
	}
	change := []unix.PollFd{{Fd: int32(m.file.Fd()), Events: unix.POLLPRI}}
	n, err := unix.Poll(change, 0)
	if anew || m.table == nil || n != 0 || err != nil {
		// What says the same stays the same table: for another one each round would look again.
		if now := read(m.file); now == nil || m.table == nil || !slices.Equal(now.mount, m.table.mount) {
			m.table = now
		}
	}
	return m.table
}

// Close releases what Now keeps open.
func (m *Mounts) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file != nil {
		_ = m.file.Close() // it was only read
	}
	m.file, m.table = nil, nil
}

// read parses proc_pid_mountinfo(5): the first field is the id, the fifth the place.
func read(file *os.File) *Table {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil
	}
	t := &Table{ids: map[int]bool{}}
	for line := range bytes.Lines(text) {
		fields := bytes.SplitN(line, []byte(" "), 6)
		if len(fields) < 6 {
			return nil
		}
		id, err := strconv.Atoi(string(fields[0]))
		if err != nil {
			return nil
		}
		t.ids[id] = true
		t.mount = append(t.mount, mount{id, unescape.Replace(string(fields[4]))})
	}
	return t
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// within are the mounts at dir and below it.
func (t *Table) within(dir string) []mount {
	var found []mount
	if t == nil {
		return nil // what removes the directory finds them
	}
	for _, m := range t.mount {
		if below(m.point, dir) {
			found = append(found, m)
		}
	}
	return found
}

func below(point, dir string) bool { return point == dir || strings.HasPrefix(point, dir+"/") }

// Free unmounts what is mounted at the directory dir or below it, if nothing of that
// was mounted before; it follows no link. The error is a *MountedError if something is
// still mounted there. Processes that could mount more meanwhile must be dead.
func (m *Mounts) Free(dir string, before *Table) error {
	now := m.look(true)
	if now == nil || len(now.mount) == 0 {
		return nil
	}
	parent, err := os.OpenFile(filepath.Dir(dir), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }() // nothing is written through it
	above, err := os.Readlink(descriptor(int(parent.Fd())))
	if err != nil {
		return fmt.Errorf("find the mounts below '%s': %w", dir, err)
	}
	there := filepath.Join(above, filepath.Base(dir))
	for left := now.within(there); len(left) > 0; {
		for _, mounted := range left {
			if before == nil || before.ids[mounted.id] {
				return &MountedError{Path: mounted.point}
			}
		}
		if err := unmount(parent, above, left); err != nil {
			return err
		}
		rest := m.look(true).within(there)
		if len(rest) >= len(left) {
			return &MountedError{Path: rest[0].point, Err: errors.New("it was unmounted, and is there again")}
		}
		left = rest
	}
	return nil
}

// unmount unmounts what is mounted nearest to the top, with all that is mounted in it.
// above is the path of parent.
func unmount(parent *os.File, above string, mounts []mount) error {
	top, alone := mounts[0].point, len(mounts) == 1
	for _, m := range mounts {
		if len(m.point) < len(top) {
			top = m.point
		}
	}
	rel, err := filepath.Rel(above, top)
	if err != nil {
		return fmt.Errorf("find the mount at '%s': %w", top, err)
	}
	dir, err := descend(int(parent.Fd()), filepath.Dir(rel))
	if err != nil {
		return &MountedError{Path: top, Err: err}
	}
	defer func() { _ = unix.Close(dir) }()
	place := descriptor(dir) + "/" + filepath.Base(rel)
	if !alone {
		// A mount in a copy of a mount that others see as well, as with mount --rbind
		// /sys, would be unmounted there too.
		if err := unix.Mount("", place, "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
			return &MountedError{Path: top, Err: os.NewSyscallError("mount --make-rprivate", err)}
		}
	}
	if err := unix.Unmount(place, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return &MountedError{Path: top, Err: os.NewSyscallError("umount2", err)}
	}
	return nil
}

// descend opens a directory below parent without a link or a mount on the way.
func descend(parent int, rel string) (int, error) {
	w := walk{ways: ways}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	fd, err := openat(parent, ".", flags)
	if err != nil {
		return -1, os.NewSyscallError("openat", err)
	}
	for name := range strings.SplitSeq(rel, "/") {
		if name == "." {
			continue
		}
		next, err := w.open(fd, name, flags)
		_ = unix.Close(fd)
		if err != nil {
			return -1, fmt.Errorf("open '%s': %w", name, err)
		}
		fd = next
	}
	return fd, nil
}
