package cgroup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

var errNoMemory = fmt.Errorf("cgroup: the group has no memory controller: %w", errors.ErrUnsupported)

// Group is the control group of one slot.
type Group struct {
	tree   *Tree
	number int
	v2     string   // directory, "" if none
	dir    *os.File // v2, open; nil without
	v1     []string // directories
	counters
}

// FD is a descriptor of the group's directory in version 2, for SysProcAttr.CgroupFD; -1 if
// there is none. It is closed by Remove.
func (g *Group) FD() int {
	if g.dir == nil {
		return -1
	}
	return int(g.dir.Fd())
}

// JoinPaths are the files of version 1 into each of which a process that joins
// the group writes "0" or its own number before it executes the program, and
// before it gives up its user. None where FD does it all.
func (g *Group) JoinPaths() []string {
	paths := make([]string, 0, len(g.v1))
	for _, dir := range g.v1 {
		paths = append(paths, filepath.Join(dir, "cgroup.procs"))
	}
	return paths
}

// Kill kills all of the group and waits for their end, at most five seconds: then
// it returns ErrPopulated. Where FD is -1 it kills those who joined. Remove a group that
// was killed, and make it anew with [Tree.Slot]: since the fix of a race in the kernel (Linux
// 6.14, and back in the stable series) a process that clone3 starts in a group
// that saw cgroup.kill, from one that did not, is killed at birth.
func (g *Group) Kill() error {
	if g.v2 != "" {
		return killAll(g.v2)
	}
	return killDirs(g.v1)
}

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
	for _, file := range []*os.File{g.dir, g.peak} {
		_ = file.Close() // also of a nil one
	}
	g.dir, g.peak = nil, nil
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

// Limits are for all processes of a group together; 0 is no limit.
type Limits struct {
	// MemoryMax is in bytes, swap included: beyond it the kernel kills.
	MemoryMax int64
	// PidsMax is how many processes and threads there may be: beyond it no more start.
	PidsMax int
}

func (l Limits) validate() error {
	switch {
	case l.MemoryMax < 0:
		return fmt.Errorf("cgroup: memory_max = %d: must not be negative; 0 is no limit", l.MemoryMax)
	case l.PidsMax < 0:
		return fmt.Errorf("cgroup: pids_max = %d: must not be negative; 0 is no limit", l.PidsMax)
	}
	return nil
}

// Limit gives the group other limits, as far as they are within those of its tree; 0 is that of the tree. It is for a group
// that is empty. The error matches EBUSY if what it has used before is beyond the limit and cannot be freed; the group is of no use then.
func (g *Group) Limit(l Limits) error {
	most := g.tree.limits
	lower := Limits{MemoryMax: lowest(l.MemoryMax, most.MemoryMax), PidsMax: lowest(l.PidsMax, most.PidsMax)}
	dir, v1 := g.place("memory")
	if err := g.apply(lower); err != nil || v1 || lower.MemoryMax == 0 {
		return err
	}
	return lower.holds(dir) // version 1 refuses a limit that is too low; version 2 takes it, and kills who comes
}

// holds is an error if a group of version 2 has used more.
func (l Limits) holds(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "memory.current"))
	if err != nil {
		return fmt.Errorf("read memory.current: %w", err)
	}
	if used, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil || used > l.MemoryMax {
		return fmt.Errorf("set %d: memory.current is %q: %w", l.MemoryMax, text, syscall.EBUSY)
	}
	return nil
}

// lowest is the lower one of two limits, but no limit where there can be none.
func lowest[T int | int64](limit, most T) T {
	if limit == 0 {
		return most
	}
	return min(limit, most)
}

// controllers are the ones that the limits need.
func (l Limits) controllers() []string {
	var names []string
	if l.MemoryMax > 0 {
		names = append(names, "memory")
	}
	if l.PidsMax > 0 {
		names = append(names, "pids")
	}
	return names
}

// apply sets the limit of one controller.
func (l Limits) apply(controller, dir string, v1 bool) error {
	if controller == "pids" {
		return put(filepath.Join(dir, "pids.max"), strconv.Itoa(l.PidsMax))
	}
	limit, swap, most := "memory.max", "memory.swap.max", strconv.FormatInt(l.MemoryMax, 10)
	inSwap := "0"
	if v1 {
		limit, swap = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
		inSwap = most // it is the sum there
	}
	// Without swap accounting there is no such file, or it refuses. Where it has the sum, that may not be below the other one, so that
	// it is first to be raised, and last to be lowered.
	_ = put(filepath.Join(dir, swap), inSwap)
	if err := put(filepath.Join(dir, limit), most); err != nil {
		return err
	}
	_ = put(filepath.Join(dir, swap), inSwap)
	return nil
}

// enable passes a controller of version 2 on to the children of dir.
func enable(dir, controller string) error {
	name := filepath.Join(dir, "cgroup.subtree_control")
	enabled, err := os.ReadFile(name)
	if err != nil || slices.Contains(strings.Fields(string(enabled)), controller) {
		return err
	}
	return put(name, "+"+controller)
}

// offers reports whether a group of version 2 has the controller.
func offers(dir, controller string) bool {
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	return err == nil && slices.Contains(strings.Fields(string(have)), controller)
}

// counters are what the memory controller of a group counts.
type counters struct {
	// kills is the file that counts them, "" without that controller.
	kills string
	// peak stays open: what is reset in version 2 is only what this descriptor shows.
	// It is nil without that file.
	peak *os.File
}

func openCounters(dir string, v1 bool) counters {
	kills, peak := "memory.events", "memory.peak"
	if v1 {
		kills, peak = "memory.oom_control", "memory.max_usage_in_bytes"
	}
	c := counters{kills: filepath.Join(dir, kills)}
	peak = filepath.Join(dir, peak)
	var err error
	if c.peak, err = os.OpenFile(peak, os.O_RDWR, 0); err != nil {
		c.peak, _ = os.Open(peak)
	}
	return c
}

// OOMKills is how many processes the kernel has killed since Slot because
// of MemoryMax. It is errors.ErrUnsupported without a memory controller.
func (c *counters) OOMKills() (int64, error) {
	if c.kills == "" {
		return 0, errNoMemory
	}
	return field(c.kills, "oom_kill")
}

// PeakMemory is the most memory the group has used since Slot or ResetPeak, in
// bytes. It is errors.ErrUnsupported where the kernel does not tell.
func (c *counters) PeakMemory() (int64, error) {
	if c.peak == nil {
		return 0, errNoMemory
	}
	text, err := io.ReadAll(io.NewSectionReader(c.peak, 0, 4096))
	if err != nil {
		return 0, err
	}
	return number(c.peak.Name(), string(text))
}

// ResetPeak resets PeakMemory. It is errors.ErrUnsupported in version 2
// before Linux 6.12: the peak is then that of all rounds so far.
func (c *counters) ResetPeak() error {
	if c.peak == nil {
		return errNoMemory
	}
	if err := set(c.peak, "0"); err != nil {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return nil
}
