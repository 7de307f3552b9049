package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

const openReadWrite = unix.O_RDWR

var errNoMemory = fmt.Errorf("cgroup: the group has no memory controller: %w", errors.ErrUnsupported)

// Group is the control group of one slot.
type Group struct {
	tree   *Tree
	number int
	v2     string // directory, "" if none
	fd     int
	v1     []string // directories
	memory counters
}

// FD is a descriptor of the group's directory in version 2, for [OpenLeaf]; -1 if
// there is none. It is closed by Remove.
func (g *Group) FD() int { return g.fd }

// JoinPaths are files of version 1 into each of which a process that is to be in
// the group writes "0" or its own number before it executes the program, and
// before it gives up its user. None where the Leaf does it all.
func (g *Group) JoinPaths() []string {
	paths := make([]string, 0, len(g.v1))
	for _, dir := range g.v1 {
		paths = append(paths, filepath.Join(dir, "cgroup.procs"))
	}
	return paths
}

// Kill kills all of the group from outside, whoever holds its Leaf, which is then
// to be opened anew; it waits at most five seconds: then it is ErrPopulated. Where
// FD is -1 it kills those who joined.
func (g *Group) Kill() error {
	if g.v2 != "" {
		return killAll(g.v2)
	}
	return killDirs(g.v1)
}

// OOMKills is how many processes the kernel has killed since Slot because
// of MemoryMax. It is errors.ErrUnsupported without a memory controller.
func (g *Group) OOMKills() (int64, error) { return g.memory.oomKills() }

// PeakMemory is the most memory the group has used since Slot or ResetPeak, in
// bytes. It is errors.ErrUnsupported where the kernel does not tell.
func (g *Group) PeakMemory() (int64, error) { return g.memory.peakMemory() }

// ResetPeak makes PeakMemory begin anew. It is errors.ErrUnsupported in version 2
// before Linux 6.12: the peak is then that of all rounds so far.
func (g *Group) ResetPeak() error { return g.memory.resetPeak() }

// Remove kills what is left in the group, also who only joined, and removes it.
func (g *Group) Remove() error {
	g.tree.mu.Lock()
	defer g.tree.mu.Unlock()
	return g.remove()
}

func (g *Group) remove() error {
	if g.tree.groups[g.number] != g {
		return nil // removed before
	}
	delete(g.tree.groups, g.number)
	for _, fd := range []int{g.fd, g.memory.peak} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	g.fd, g.memory.peak = -1, -1
	return clearDirs(g.dirs())
}

func (g *Group) dirs() []string {
	if g.v2 == "" {
		return g.v1
	}
	return slices.Concat([]string{g.v2}, g.v1)
}

func killDirs(dirs []string) error {
	errs := make([]error, 0, len(dirs))
	for _, dir := range dirs {
		errs = append(errs, killAll(dir))
	}
	return errors.Join(errs...)
}

// clearDirs kills and removes.
func clearDirs(dirs []string) error {
	errs := make([]error, 0, 1+len(dirs))
	errs = append(errs, killDirs(dirs))
	for _, dir := range dirs {
		errs = append(errs, removeGroup(dir))
	}
	return errors.Join(errs...)
}
