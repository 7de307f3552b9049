package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Guard watches that some paths keep a reserve of free space. It has no state
// and may be used by any number of goroutines.
type Guard struct {
	// Paths are looked at, one for each file system.
	Paths []string
	// Reserve is the least free space, in bytes; 0 means that any will do.
	Reserve uint64
}

// NewGuard makes a Guard that asks each file system of paths once. A path that
// is not there yet counts as the nearest directory above it that is; an empty
// one is left out. The error says which path cannot be looked at.
func NewGuard(reserve uint64, paths ...string) (*Guard, error) {
	g := &Guard{Reserve: reserve}
	var seen []filesystem
	for _, path := range paths {
		if path == "" {
			continue
		}
		there, where, err := locate(path)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(seen, where) {
			seen = append(seen, where)
			g.Paths = append(g.Paths, there)
		}
	}
	return g, nil
}

// filesystem tells file systems apart. A quota on a directory shows as another
// size on the same device.
type filesystem struct{ device, blocks uint64 }

// locate finds the file system of path, and the existing directory that stands
// for it.
func locate(path string) (there string, where filesystem, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return "", where, fmt.Errorf("make path absolute: %w", err)
	}
	info, err := os.Stat(path)
	for errors.Is(err, fs.ErrNotExist) && path != "/" {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return "", where, fmt.Errorf("look at file system: %w", err)
	}
	stat, err := statfs(path)
	if err != nil {
		return "", where, err
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		where.device = sys.Dev
	}
	where.blocks = stat.Blocks
	return path, where, nil
}

// Check returns a [FullError] for the first path with less free space than
// Reserve, nil if there is none. It costs one system call a path. Other errors
// mean that a path cannot be looked at any more.
func (g *Guard) Check() error {
	if g.Reserve == 0 {
		return nil
	}
	for _, path := range g.Paths {
		free, err := Free(path)
		if err != nil {
			return err
		}
		if free < g.Reserve {
			return &FullError{Path: path, Free: free, Reserve: g.Reserve}
		}
	}
	return nil
}
