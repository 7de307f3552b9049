package shim

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// killDescendants sends SIGKILL to all descendants of root that can be found now,
// children before their parents, and returns how many those were. One that is
// forked meanwhile, or falls to another parent, is found by the next call.
func killDescendants(root int) int {
	tree := parents()
	depths := make(map[int]int)
	for pid := range tree {
		if depth := depth(tree, pid, root); depth > 0 {
			depths[pid] = depth
		}
	}
	killed := 0
	for _, pid := range slices.SortedFunc(maps.Keys(depths), func(a, b int) int { return depths[b] - depths[a] }) {
		if killChecked(pid, func() bool { return isChildWithin(tree, pid, root) }) {
			killed++
		}
	}
	return killed
}

// parents maps every process to its parent; zombies are left out.
func parents() map[int]int {
	tree := make(map[int]int)
	for _, pid := range processes() {
		if parent := parentOf(pid); parent > 0 {
			tree[pid] = parent
		}
	}
	return tree
}

// depth counts the steps from pid up to root, 0 if pid is no descendant. A table
// that changed while it was read could hold a circle, so the way is bounded.
func depth(tree map[int]int, pid, root int) int {
	for n := range len(tree) {
		parent, ok := tree[pid]
		switch {
		case !ok:
			return 0
		case parent == root:
			return n + 1
		}
		pid = parent
	}
	return 0
}

// isChildWithin looks again whether pid still has a parent in the tree of root.
func isChildWithin(tree map[int]int, pid, root int) bool {
	parent := parentOf(pid)
	return parent == root || parent > 0 && depth(tree, parent, root) > 0
}

// killChecked sends SIGKILL to pid if check holds while its number is pinned.
func killChecked(pid int, check func() bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		return check() && unix.Kill(pid, unix.SIGKILL) == nil
	}
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	return check() && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

// processes lists the numbers under /proc.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf reads the parent of a live process; 0 for a zombie or if pid is gone.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The command name before the last parenthesis may hold anything.
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}
