package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

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
	if err := put(filepath.Join(dir, limit), most); err != nil {
		return err
	}
	// Without swap accounting there is no such file, or it refuses.
	_ = put(filepath.Join(dir, swap), inSwap)
	return nil
}

// enable passes a controller of version 2 on to the children of dir.
func enable(dir, controller string) error {
	name := filepath.Join(dir, "cgroup.subtree_control")
	enabled, err := readSmall(name)
	if err != nil || slices.Contains(strings.Fields(enabled), controller) {
		return err
	}
	return put(name, "+"+controller)
}

// offers reports whether a group of version 2 has the controller.
func offers(dir, controller string) bool {
	have, err := readSmall(filepath.Join(dir, "cgroup.controllers"))
	return err == nil && slices.Contains(strings.Fields(have), controller)
}

// counters are what the memory controller of a group counts.
type counters struct {
	dir string // "" without that controller
	v1  bool
	// peak stays open: what is reset in version 2 is only what this descriptor shows.
	peak     int
	peakName string
}

func openCounters(dir string, v1 bool) counters {
	c := counters{dir: dir, v1: v1, peak: -1}
	if dir == "" {
		return c
	}
	c.peakName = filepath.Join(dir, "memory.peak")
	if v1 {
		c.peakName = filepath.Join(dir, "memory.max_usage_in_bytes")
	}
	var err error
	if c.peak, err = open(c.peakName, openReadWrite); err != nil {
		c.peak, _ = open(c.peakName, 0) // -1 where there is none
	}
	return c
}

func (c *counters) oomKills() (int64, error) {
	switch {
	case c.dir == "":
		return 0, errNoMemory
	case c.v1:
		return field(filepath.Join(c.dir, "memory.oom_control"), "oom_kill")
	}
	return field(filepath.Join(c.dir, "memory.events"), "oom_kill")
}

func (c *counters) peakMemory() (int64, error) {
	if c.peak < 0 {
		return 0, errNoMemory
	}
	text, err := readFD(c.peak, c.peakName)
	if err != nil {
		return 0, err
	}
	return number(c.peakName, text)
}

func (c *counters) resetPeak() error {
	if c.peak < 0 {
		return errNoMemory
	}
	if err := putFD(c.peak, c.peakName, "0"); err != nil {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return nil
}
