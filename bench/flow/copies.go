package main

import (
	"context"
	"io/fs"
	"path/filepath"

	"github.com/tdf-go/tdf/internal/ops/archive"
)

// copies are the tasks in the archive.
type copies struct {
	Tasks int64 `json:"tasks"`
	// Bytes are those of all files.
	Bytes int64 `json:"bytes"`
	// Damaged is how many things are wrong.
	Damaged int64 `json:"damaged"`
}

// sums are what must hold of them.
func (c *copies) sums(purged int64) []sum {
	if c == nil {
		return nil
	}
	return []sum{{"tasks in the archive", c.Tasks, purged}, {"damages of the archive", c.Damaged, 0}}
}

// readCopies reads all of the archive.
func readCopies(ctx context.Context, dir, namespace string) (*copies, error) {
	var c copies
	r := archive.Reader{
		Dirs: []string{dir}, Namespace: namespace, Verify: true, Damaged: func(*archive.DamageError) { c.Damaged++ },
	}
	err := r.Latest(ctx, func(*archive.Entry) error {
		c.Tasks++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &c, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			c.Bytes += info.Size()
		}
		return err
	})
}
