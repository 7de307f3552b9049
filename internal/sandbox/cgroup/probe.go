package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// location is where a process is in the hierarchies, as directories; a hierarchy
// that is not mounted, or not down to the process, is left out.
type location struct {
	v2 string
	v1 map[string]string // by controller
}

// own finds this process.
func own() (location, error) {
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return location{}, fmt.Errorf("cgroup: own cgroup: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return location{}, fmt.Errorf("cgroup: mounts: %w", err)
	}
	return locate(string(cgroups), string(mounts)), nil
}

// locate combines a process' cgroup and mountinfo, see cgroups(7) and
// proc_pid_mountinfo(5).
func locate(cgroups, mountinfo string) location {
	at := location{v1: map[string]string{}}
	mounts := parseMounts(mountinfo)
	for line := range strings.Lines(cgroups) {
		id, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case controllers == "" && id == "0":
			at.v2 = directory(mounts, path, func(m mount) bool { return m.kind == "cgroup2" })
		default:
			for c := range strings.SplitSeq(controllers, ",") {
				if dir := directory(mounts, path, func(m mount) bool {
					return m.kind == "cgroup" && slices.Contains(m.options, c)
				}); dir != "" {
					at.v1[c] = dir
				}
			}
		}
	}
	return at
}

// mount is one line of mountinfo.
type mount struct {
	root, point, kind string
	options           []string
}

func parseMounts(text string) []mount {
	var mounts []mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 6 || len(right) < 3 {
			continue
		}
		mounts = append(mounts, mount{
			root: unescape(left[3]), point: unescape(left[4]), kind: right[0],
			options: strings.Split(right[2], ","),
		})
	}
	return mounts
}

// unescape resolves what mountinfo does to white space and the backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// directory returns the directory of path in the first mount that shows it. In a
// cgroup namespace a path may begin with "/..", which no mount shows.
func directory(mounts []mount, path string, wanted func(mount) bool) string {
	for _, m := range mounts {
		if !wanted(m) || strings.HasPrefix(path, "/..") {
			continue
		}
		if m.root == "/" {
			return filepath.Join(m.point, path)
		}
		if rest, ok := strings.CutPrefix(path, m.root); ok && (rest == "" || rest[0] == '/') {
			return filepath.Join(m.point, rest)
		}
	}
	return ""
}

// tryKill makes a group below base and starts and kills in it.
func (t *Tree) tryKill(base, name string) error {
	if base == "" {
		return unavailable("kill", errors.New("the worker's own cgroup of version 2 is not to be seen here"), remedyMount)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(base, &stat); err != nil {
		return unavailable("kill", fmt.Errorf("%s: %w", base, err), remedyDelegate)
	}
	if stat.Type != unix.CGROUP2_SUPER_MAGIC {
		return unavailable("kill", fmt.Errorf("%s is not in a file system of type cgroup2", base), remedyDelegate)
	}
	tree := filepath.Join(base, name)
	err := t.inProbe(tree, func(dir string) error {
		if err := tryStart(dir); err != nil {
			return err
		}
		if err := put(filepath.Join(dir, "cgroup.kill"), "1"); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil // an old kernel, where killEach does
	})
	if err != nil {
		return unavailable("kill", err, remedyDelegate)
	}
	return nil
}

// inProbe tries something in a new group, of which nothing is left. The worker's
// directory stays if it works.
func (t *Tree) inProbe(tree string, try func(dir string) error) error {
	dir := filepath.Join(tree, "probe."+t.mark)
	err := makeGroup(tree)
	if err == nil {
		err = makeGroup(dir)
	}
	if err == nil {
		err = errors.Join(try(dir), removeGroup(dir))
	}
	if err != nil {
		_ = removeEmpty(tree) // the first error says more
	}
	return err
}

// tryStart starts a process in the group that ends before it executes anything:
// all the kernel checks for a start in a group happens before.
func tryStart(dir string) error {
	group, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = group.Close() }() // nothing is written through it
	const nothing = "/dev/null/nothing"
	pid, err := syscall.ForkExec(nothing, []string{nothing}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())},
	})
	if errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err == nil {
		err = killedAtBirth(pid)
	}
	return fmt.Errorf("start a process in %s from the worker's own cgroup: %w", dir, err)
}

// tryLimits finds and tries the controllers the limits need.
func (t *Tree) tryLimits(at location, name string) error {
	for _, controller := range t.limits.controllers() {
		if err := t.tryLimit(at, name, controller); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) tryLimit(at location, name, controller string) error {
	if at.v2 != "" && offers(at.v2, controller) {
		if t.cannot != nil {
			return unavailable("limits", errors.Unwrap(t.cannot), remedyDelegate)
		}
		return t.tryV2(at.v2, controller)
	}
	dir, ok := at.v1[controller]
	if !ok {
		return unavailable("limits", fmt.Errorf("there is no %s controller", controller), remedyController)
	}
	tree := filepath.Join(dir, name)
	t.v1[controller] = tree
	err := t.inProbe(tree, func(dir string) error {
		procs, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
		if err == nil {
			err = errors.Join(procs.Close(), t.limits.apply(controller, dir, true))
		}
		return err
	})
	if err != nil {
		return unavailable("limits", err, remedyV1)
	}
	return nil
}

// tryV2 enables a controller down to the groups of the slots. The kernel refuses
// it in a cgroup that holds processes itself.
func (t *Tree) tryV2(base, controller string) error {
	err := enable(base, controller)
	if errors.Is(err, unix.EBUSY) {
		return unavailable("limits", fmt.Errorf("%w, because that cgroup holds processes", err), remedyEmpty)
	}
	if err == nil {
		err = enable(t.v2, controller)
	}
	if err == nil {
		err = t.inProbe(t.v2, func(dir string) error { return t.limits.apply(controller, dir, false) })
	}
	if err != nil {
		return unavailable("limits", err, remedyDelegate)
	}
	return nil
}

// killedAtBirth is for a process that the kernel killed before it could fail. See
// Group.Kill: here it is the worker's own group that was killed once.
func killedAtBirth(pid int) error {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if err == nil {
			return fmt.Errorf("it was killed at once (%v), as if the worker's cgroup had seen cgroup.kill before; "+
				"start the worker in a new cgroup", status.Signal())
		}
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("wait4", err)
		}
	}
}
