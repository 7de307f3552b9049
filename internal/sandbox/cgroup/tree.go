package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
)

// Tree holds the groups of one worker. Its methods may be called at the same time.
type Tree struct {
	limits    Limits
	mark      string            // of this incarnation
	v2        string            // directory of the worker, "" if unusable
	v1        map[string]string // directories by controller, only those in use
	places    []string          // where incarnations of the worker have their groups
	cannot    error             // CanKill
	unlimited error             // CanLimit

	mu     sync.Mutex
	groups map[int]*Group
}

// Open finds the cgroups for the worker of that name below dir, a directory of
// version 2, or below the worker's own cgroup if dir is "". It tries to kill and
// to limit, but leaves groups of other incarnations alone: mark, letters, digits,
// dots and dashes, tells this one from all others on this host.
//
// Where a limit needs it, controllers are enabled for the children of dir, and
// stay so. The error is about the arguments or an unreadable /proc.
func Open(dir, name, mark string, l Limits) (*Tree, error) {
	if name == "" {
		return nil, errors.New("cgroup: the worker's name is empty; it names the control groups")
	}
	if dir != "" && !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("cgroup: cgroup = %s: not an absolute path; name a directory such as /sys/fs/cgroup/tdf", dir)
	}
	if err := l.validate(); err != nil {
		return nil, err
	}
	at, err := own()
	if err != nil {
		return nil, err
	}
	if dir != "" {
		at.v2 = filepath.Clean(dir)
	}
	return openAt(at, name, mark, l), nil
}

func openAt(at location, name, mark string, l Limits) *Tree {
	t := &Tree{limits: l, mark: mark, v1: map[string]string{}, groups: map[int]*Group{}}
	name = treeName(name)
	if t.cannot = t.tryKill(at.v2, name); t.cannot == nil {
		t.v2 = filepath.Join(at.v2, name)
		t.places = append(t.places, t.v2)
	}
	for _, controller := range []string{"memory", "pids"} {
		if dir, ok := at.v1[controller]; ok {
			t.places = append(t.places, filepath.Join(dir, name))
		}
	}
	if t.unlimited = t.tryLimits(at, name); t.unlimited != nil {
		for _, dir := range t.v1 {
			_ = removeEmpty(dir)
		}
		clear(t.v1) // all limits or none
	}
	return t
}

// CanKill is nil if Leaf.Kill reaches every process started with Leaf.FD; else
// it is an *UnavailableError.
func (t *Tree) CanKill() error { return t.cannot }

// CanLimit is nil if all the limits that are not 0 hold; else it is an
// *UnavailableError.
func (t *Tree) CanLimit() error { return t.unlimited }

// Slot makes the group of slot n, anew and empty. It sets the limits if CanLimit is nil.
func (t *Tree) Slot(n int) (*Group, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.groups[n] != nil {
		return nil, fmt.Errorf("cgroup: slot %d has a group already", n)
	}
	g := &Group{tree: t, number: n, fd: -1, memory: openCounters("", false)}
	if t.v2 != "" {
		g.v2 = filepath.Join(t.v2, t.slotName(n))
	}
	for _, controller := range t.limits.controllers() {
		if dir, ok := t.v1[controller]; ok {
			g.v1 = append(g.v1, filepath.Join(dir, t.slotName(n)))
		}
	}
	t.groups[n] = g
	if err := g.make(); err != nil {
		return nil, errors.Join(fmt.Errorf("cgroup: slot %d: %w", n, err), g.remove())
	}
	return g, nil
}

func (g *Group) make() error {
	if err := clearDirs(g.dirs()); err != nil {
		return err
	}
	for _, dir := range g.dirs() {
		if err := errors.Join(makeGroup(filepath.Dir(dir)), makeGroup(dir)); err != nil {
			return err
		}
	}
	if g.v2 != "" {
		var err error
		if g.fd, err = open(g.v2, openDirectory); err != nil {
			return err
		}
	}
	if limited := g.tree.unlimited == nil; limited {
		return g.limit()
	}
	return nil
}

// limit sets the limits and opens the counters.
func (g *Group) limit() error {
	for _, controller := range g.tree.limits.controllers() {
		dir, v1 := g.v2, false
		if tree, ok := g.tree.v1[controller]; ok {
			dir, v1 = filepath.Join(tree, g.tree.slotName(g.number)), true
		}
		if err := g.tree.limits.apply(controller, dir, v1); err != nil {
			return err
		}
		if controller == "memory" {
			g.memory = openCounters(dir, v1)
		}
	}
	return nil
}

// Close removes all groups, killing what is in them.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	errs := make([]error, 0, len(t.groups)+len(t.places))
	for _, g := range t.groups {
		errs = append(errs, g.remove())
	}
	for _, dir := range t.places {
		errs = append(errs, removeEmpty(dir))
	}
	return errors.Join(errs...)
}
