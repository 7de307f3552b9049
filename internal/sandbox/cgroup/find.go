package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// directory is where path is to be found in the first mount that shows it. In a
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
