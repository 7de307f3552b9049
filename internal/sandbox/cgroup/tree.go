// Package cgroup keeps the processes of a worker's rounds together in control
// groups, one group a slot, so that all of them can be killed, whatever they do
// to get away, and so that their memory and number can be limited.
//
// Killing takes version 2 of control groups, wherever it is mounted. Limits take
// the controllers memory and pids, which belong to version 2 or, on a hybrid host,
// to hierarchies of version 1: a group is then a directory in each of them.
//
// [Open] tries everything it will need. What cannot be had is no error of Open:
// [Tree.CanKill] and [Tree.CanLimit] say why and what to do.
//
// Below the worker's own cgroup, or the one of its configuration, there is one
// directory tdf-NAME a worker, and in it slot-0.MARK, slot-1.MARK and so on. The
// worker itself is never moved.
package cgroup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
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

// CanKill is nil if Group.Kill reaches every process started with Group.FD; else
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
	g := &Group{tree: t, number: n}
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
		if g.dir, err = os.Open(g.v2); err != nil {
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
	if err := g.apply(g.tree.limits); err != nil {
		return err
	}
	for _, controller := range g.tree.limits.controllers() {
		if controller == "memory" {
			g.counters = openCounters(g.place(controller))
		}
	}
	return nil
}

// apply sets limits, one for each limit of the tree.
func (g *Group) apply(l Limits) error {
	for _, controller := range l.controllers() {
		dir, v1 := g.place(controller)
		if err := l.apply(controller, dir, v1); err != nil {
			return err
		}
	}
	return nil
}

// place is the directory in which a controller has the group, and whether that is of version 1.
func (g *Group) place(controller string) (dir string, v1 bool) {
	if tree, ok := g.tree.v1[controller]; ok {
		return filepath.Join(tree, g.tree.slotName(g.number)), true
	}
	return g.v2, false
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

// Sweep kills and removes the groups that earlier incarnations of this worker have
// left behind, in all hierarchies, and tells how many processes there were. left
// reports whether the incarnation of a mark is one of them.
func (t *Tree) Sweep(left func(mark string) bool) (killed int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	dirs := t.leftOver(left)
	seen := map[int]bool{}
	for _, dir := range dirs {
		for _, pid := range members(dir) {
			seen[pid] = true
		}
	}
	return len(seen), clearDirs(dirs)
}

func (t *Tree) leftOver(left func(mark string) bool) []string {
	dirs := make([]string, 0, len(t.places))
	for _, place := range t.places {
		dirs = append(dirs, slices.DeleteFunc(subgroups(place), func(dir string) bool {
			_, mark, _ := strings.Cut(filepath.Base(dir), ".")
			return mark == t.mark || !left(mark)
		})...)
	}
	return dirs
}

// removeEmpty removes a worker's directory unless somebody else's groups are in it.
func removeEmpty(dir string) error {
	if len(subgroups(dir)) > 0 {
		return nil
	}
	if err := removeGroup(dir); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) {
		return err
	}
	return nil
}

// maxName keeps a directory's name below the 255 bytes of the kernel.
const maxName = 200

// treeName is the directory of a worker; different for different names.
func treeName(worker string) string {
	var b strings.Builder
	for i := range len(worker) {
		if c := worker[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	encoded := b.String()
	if len(encoded) > maxName {
		// "%~" is no code of a byte, so no short name looks like this.
		encoded = fmt.Sprintf("%s%%~%x", encoded[:maxName-34], sha256.Sum256([]byte(worker)))[:maxName]
	}
	return "tdf-" + encoded
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// slotName is the directory of a slot. Two workers of one name may live on a
// host, at two sites, so it also says whose it is.
func (t *Tree) slotName(n int) string { return fmt.Sprintf("slot-%d.%s", n, t.mark) }

// ErrPopulated means that processes of a group outlived SIGKILL for five seconds,
// usually because they hang in the kernel (a dead network file system).
var ErrPopulated = errors.New("cgroup: processes survive SIGKILL")

// UnavailableError says why control groups cannot do something here.
type UnavailableError struct {
	// Feature is "kill" or "limits".
	Feature string
	// Err is what is missing or what failed.
	Err error
	// Remedy is what an administrator can do.
	Remedy string
}

// Error names the feature, what failed and the remedy.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("cgroup: no %s: %v; %s", e.Feature, e.Err, e.Remedy)
}

// Unwrap returns what failed.
func (e *UnavailableError) Unwrap() error { return e.Err }

func unavailable(feature string, err error, remedy string) error {
	return &UnavailableError{Feature: feature, Err: err, Remedy: remedy}
}

// The remedies of an UnavailableError.
const (
	remedyMount    = "mount version 2 of cgroups: mount -t cgroup2 none /sys/fs/cgroup/unified"
	remedyDelegate = "give the worker a cgroup: with systemd Delegate=yes and DelegateSubgroup=worker in its unit " +
		"and [worker] cgroup=DIR naming the unit's directory, else a directory of the cgroup file system " +
		"that is its user's own, with the worker started inside it"
	remedyEmpty = "name a delegated cgroup without processes of its own by [worker] cgroup=DIR " +
		"(systemd: Delegate=yes and DelegateSubgroup=worker), or set memory_max and pids_max to 0"
	remedyV1 = "run the worker as root or in cgroups of version 1, for memory and pids, that are its user's own, " +
		"or set memory_max and pids_max to 0"
	remedyController = "enable the controller in the kernel and in the container, or set memory_max or pids_max to 0"
)
