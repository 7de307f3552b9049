package cgroup

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

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
