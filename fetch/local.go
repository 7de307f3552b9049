package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// copyLocal copies a local rsync: path without the rsync program.
func (f *Fetcher) copyLocal(ctx context.Context, name string, sink *sink) error {
	if !filepath.IsAbs(name) {
		name = filepath.Join(f.opts.WorkDir, name)
	}
	file, err := f.openAs(filepath.Clean(name))
	if err != nil {
		return cleanPathError(err)
	}
	defer func() { _ = file.Close() }()
	fi, err := file.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%w: '%s' is no regular file", ErrForbidden, printable(name))
	}
	return copyContext(ctx, sink, file)
}

// openAs opens with the rights of who may read local sources.
func (f *Fetcher) openAs(name string) (file *os.File, err error) {
	if f.opts.ReadAs == nil {
		return f.openLocal(name)
	}
	err = f.opts.ReadAs(func() (err error) {
		file, err = f.openLocal(name)
		return err
	})
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: local sources are read as the user that programs run as, who must be allowed to: %w",
			ErrForbidden, cleanPathError(err))
	}
	return file, err
}

// openLocal opens without waiting, so that a FIFO does not block, and below a
// configured root if there are any, so that no link leads out.
func (f *Fetcher) openLocal(name string) (*os.File, error) {
	const flags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	if len(f.opts.LocalRoots) == 0 {
		return os.OpenFile(name, flags, 0)
	}
	for _, dir := range f.opts.LocalRoots {
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.OpenFile(rel, flags, 0)
	}
	return nil, fmt.Errorf("%w: '%s' is in none of the directories this worker takes programs from", ErrForbidden, printable(name))
}

// cleanPathError keeps names of files, which tasks choose, printable.
func cleanPathError(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s '%s': %w", pe.Op, printable(pe.Path), pe.Err)
	}
	return err
}
