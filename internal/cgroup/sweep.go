package cgroup

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Sweep kills and removes the groups that an earlier worker of that name left
// behind, in all hierarchies, and tells how many processes there were. Groups of
// this Tree are left alone. Call it only when no other worker of that name lives.
func (t *Tree) Sweep() (killed int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	dirs := t.leftOver()
	seen := map[int]bool{}
	for _, dir := range dirs {
		for _, pid := range members(dir) {
			seen[pid] = true
		}
	}
	return len(seen), clearDirs(dirs)
}

func (t *Tree) leftOver() []string {
	dirs := make([]string, 0, len(t.stale))
	for _, tree := range t.stale {
		dirs = append(dirs, slices.DeleteFunc(subgroups(tree), t.inUse)...)
	}
	return dirs
}

func (t *Tree) inUse(dir string) bool {
	for n := range t.groups {
		if filepath.Base(dir) == slotName(n) {
			return true
		}
	}
	return false
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
