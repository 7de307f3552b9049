//go:build !linux

package remove

import "os"

// Tree removes what path names and all below it. Programs run on Linux only, and
// elsewhere there are no bind mounts that look like directories.
func Tree(path string) error { return os.RemoveAll(path) } //nolint:forbidigo // see above

// In is Tree for what has that name in the open directory dir.
func In(dir *os.File, name string) error { return Tree(dir.Name() + "/" + name) }
