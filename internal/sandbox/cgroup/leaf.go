package cgroup

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

const leafName = "round"

// Leaf is the group below a slot's group in which the processes of a round run.
//
// It exists because cgroup.kill spoils a group: since the fix of a race in the
// kernel (Linux 6.14, and back in the stable series), a process started by clone3
// in a group that was killed once, from a group that was not, is killed at
// birth. So a group that had to be killed is replaced, and the one that has the
// limits and counters stays.
type Leaf struct {
	dir    string
	fd     int
	events int // cgroup.events, open because every round asks
}

// OpenLeaf makes the leaf below the group with that [Group.FD], which may have
// been inherited from another process; it takes a mounted /proc. What is in
// a leaf that is there already is killed: a group has one at a time.
func OpenLeaf(group int) (*Leaf, error) {
	l := &Leaf{dir: fmt.Sprintf("/proc/self/fd/%d/%s", group, leafName), fd: -1, events: -1}
	if err := l.renew(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// FD is the descriptor for SysProcAttr.CgroupFD. Ask before every start: it is
// another one after a Kill.
func (l *Leaf) FD() int { return l.fd }

// Kill kills every process that was started with FD and all their descendants and
// waits for their end, at most five seconds: then it is ErrPopulated. Call it when
// the round is over; one that has left nothing costs one read of a file.
func (l *Leaf) Kill() error {
	text, err := readFD(l.events, "cgroup.events")
	if err == nil && strings.Contains(text, "populated 0\n") {
		return nil
	}
	return l.renew()
}

func (l *Leaf) renew() error {
	l.Close()
	if err := clearDirs([]string{l.dir}); err != nil {
		return err
	}
	if err := makeGroup(l.dir); err != nil {
		return err
	}
	var err error
	if l.fd, err = open(l.dir, openDirectory); err == nil {
		l.events, err = open(l.dir+"/cgroup.events", unix.O_RDONLY)
	}
	return err
}

// Close closes the descriptors; the group goes with [Group.Remove].
func (l *Leaf) Close() {
	for _, fd := range []*int{&l.fd, &l.events} {
		if *fd >= 0 {
			_ = unix.Close(*fd) // nothing was written
		}
		*fd = -1
	}
}
