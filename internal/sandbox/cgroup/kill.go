package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long processes may outlive SIGKILL.
const patience = 5 * time.Second

// killAll kills every process in the group and below and waits for their end.
func killAll(dir string) error {
	if alive, err := populated(dir); err != nil || !alive {
		return err
	}
	err := put(filepath.Join(dir, "cgroup.kill"), "1")
	if errors.Is(err, os.ErrNotExist) {
		return killEach(dir)
	}
	if err != nil {
		return err
	}
	return awaitEmpty(dir, func() error { return nil })
}

// killEach is killAll for Linux before 5.14 and version 1. Frozen processes do
// not fork while we count them, and still die of SIGKILL; before 5.2, and in
// version 1, there is no freezing and only repetition.
func killEach(dir string) error {
	freeze := filepath.Join(dir, "cgroup.freeze")
	if put(freeze, "1") == nil {
		defer func() { _ = put(freeze, "0") }() // empty by then, or reported as ErrPopulated
	}
	return awaitEmpty(dir, func() error { return signalAll(dir) })
}

// awaitEmpty calls again until the group is empty.
func awaitEmpty(dir string, again func() error) error {
	err := until(patience, func() (bool, error) {
		if err := again(); err != nil {
			return false, err
		}
		alive, err := populated(dir)
		return !alive, err
	})
	if errors.Is(err, ErrPopulated) {
		return fmt.Errorf("%w: %s: processes %v", err, dir, members(dir))
	}
	return err
}

// until calls done until it is true, with pauses that grow from 50 us to 5 ms: a
// notification of the kernel would come 10 ms late. After limit it is ErrPopulated.
func until(limit time.Duration, done func() (bool, error)) error {
	end := time.Now().Add(limit)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return ErrPopulated
		}
		<-time.After(pause)
	}
}

// populated reports whether there are processes in the group or below; not if
// there is no such group.
func populated(dir string) (bool, error) {
	n, err := field(filepath.Join(dir, "cgroup.events"), "populated")
	switch {
	case err == nil:
		return n != 0, nil
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, errors.ErrUnsupported):
		return len(members(dir)) > 0, nil // version 1, or gone
	}
	return false, err
}

// members are the processes of the group and below. Processes that this process
// cannot see, having no number in its PID namespace, are 0.
func members(dir string) []int {
	var pids []int
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil // gone, and so are its processes
	}
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	for _, sub := range subgroups(dir) {
		pids = append(pids, members(sub)...)
	}
	return pids
}

// signalAll sends SIGKILL to every process of the group but this one.
func signalAll(dir string) error {
	held := map[int]int{} // descriptors by process
	defer func() {
		for _, fd := range held {
			_ = unix.Close(fd)
		}
	}()
	for _, pid := range members(dir) {
		if pid == 0 || pid == os.Getpid() {
			continue
		}
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			held[pid] = fd
		}
	}
	// A process that ended meanwhile may have left its number to a stranger. One
	// that is held and still a member under that number is a member.
	for _, pid := range members(dir) {
		fd, ok := held[pid]
		if !ok {
			continue
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cgroup: kill process %d of %s: %w", pid, dir, err)
		}
	}
	return nil
}

// put writes value to a control file, in one write.
func put(name, value string) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(set(file, value), file.Close())
}

func set(file *os.File, value string) error {
	if _, err := file.WriteString(value); err != nil {
		return fmt.Errorf("set %s: %w", value, err)
	}
	return nil
}

// field is the number behind key in a file of lines "key number".
func field(name, key string) (int64, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == key {
			return number(name, words[1])
		}
	}
	return 0, fmt.Errorf("%s has no %s: %w", name, key, errors.ErrUnsupported)
}

func number(name, text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// makeGroup makes one directory; one that is there already will do.
func makeGroup(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// removeGroup removes an empty group and what a program may have made in it. One
// that does not exist is no error.
func removeGroup(dir string) error {
	for _, sub := range subgroups(dir) {
		if err := removeGroup(sub); err != nil {
			return err
		}
	}
	// Busy for a moment after its last process has gone.
	return until(patience, func() (bool, error) {
		err := unix.Rmdir(dir)
		switch {
		case err == nil, errors.Is(err, unix.ENOENT):
			return true, nil
		case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EINTR):
			return false, nil
		}
		return false, &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	})
}

// subgroups are the groups in dir; none if it cannot be read.
func subgroups(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var subs []string
	for _, e := range entries {
		if e.IsDir() {
			subs = append(subs, filepath.Join(dir, e.Name()))
		}
	}
	return subs
}
