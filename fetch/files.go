package fetch

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

// PackFiles packs the regular files of dir that match patterns (see task.Spec.Return), in the format of [Pack]. It returns
// how many it packed, and which patterns matched none. It leaves out links, TDF's own files, and files that base, unless it is
// empty, holds unchanged under the same name. Like [Pack] it refuses what is too much before it reads it.
func PackFiles(ctx context.Context, w io.Writer, dir, base string, patterns []string) (count int, missing []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, nil, fmt.Errorf("pack files: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	return packFiles(ctx, w, newChooser(root, base, patterns))
}

func packFiles(ctx context.Context, w io.Writer, c *chooser) (count int, missing []string, err error) {
	err = pack(ctx, w, func(p *packer) error { return c.each(ctx, p.file) })
	if limit, ok := errors.AsType[*limitError](err); ok {
		err = fmt.Errorf("%w: %s; return less", ErrLimit, limit.what())
	}
	return c.count, c.missing(), err
}

// sparse reports whether an entry has holes: a few bytes of it would fill a disk.
func sparse(hdr *tar.Header) bool {
	for key := range hdr.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// takeName takes the name of a file, and those of the directories above it, where nothing is written.
func (t *tree) takeName(name string) error {
	if t.kinds[name] != 0 {
		return refused(name, "is there twice, or as a directory too")
	}
	t.kinds[name] = kindFile
	for dir := path.Dir(name); t.kinds[dir] != kindDir; dir = path.Dir(dir) {
		if t.kinds[dir] != 0 {
			return refused(name, "lies below a name that is not a directory")
		}
		t.kinds[dir] = kindDir
	}
	return nil
}

// PackNamed writes files under names, in the format of [Pack], in the order of the names.
func PackNamed(ctx context.Context, w io.Writer, files map[string]*os.File) error {
	if err := pack(ctx, w, func(p *packer) error { return eachNamed(files, p.file) }); err != nil {
		return fmt.Errorf("pack files: %w", err)
	}
	return nil
}

// eachNamed gives put files, in the order of their names.
func eachNamed(files map[string]*os.File, put putFile) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := files[name].Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := put(name, files[name]); err != nil {
			return err
		}
	}
	return nil
}

// chooser finds the files that patterns name.
type chooser struct {
	root     *os.Root
	base     string
	patterns []*wanted
	count    int
}

func newChooser(root *os.Root, base string, patterns []string) *chooser {
	c := &chooser{root: root, base: base}
	for _, p := range patterns {
		c.patterns = append(c.patterns, &wanted{name: p, parts: parts(p)})
	}
	return c
}

// each gives put each file that a pattern names.
func (c *chooser) each(ctx context.Context, put putFile) error {
	return fs.WalkDir(c.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case name != "." && errors.Is(err, fs.ErrNotExist): // it has gone meanwhile
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		return c.visit(put, name, d)
	})
}

// missing are the patterns for which there was no file.
func (c *chooser) missing() (names []string) {
	for _, p := range c.patterns {
		if !p.found {
			names = append(names, p.name)
		}
	}
	return names
}

// putFile takes a file, as long as it is now.
type putFile func(name string, file *os.File) error

// wanted is one of the patterns.
type wanted struct {
	name  string
	parts []string
	found bool
}

// parts are the elements of a path; none of ".".
func parts(name string) []string {
	if name == "." {
		return nil
	}
	return strings.Split(name, "/")
}

// visit adds a file that a pattern names, and skips a directory that can hold none.
func (c *chooser) visit(put putFile, name string, d fs.DirEntry) error {
	if strings.HasPrefix(name, disk.Reserved) {
		return skipIf(d.IsDir())
	}
	var by []*wanted
	inside := false
	for _, w := range c.patterns {
		whole, part := reach(w.parts, parts(name))
		if whole {
			by = append(by, w)
		}
		inside = inside || part
	}
	switch {
	case d.IsDir():
		return skipIf(!inside)
	case len(by) == 0 || !d.Type().IsRegular():
		return nil
	}
	added, err := c.add(put, name)
	if added {
		c.count++
		for _, w := range by {
			w.found = true
		}
	}
	return err
}

// skipIf leaves a directory out.
func skipIf(leaveOut bool) error {
	if leaveOut {
		return fs.SkipDir
	}
	return nil
}

// add adds a file unless the base holds the same one. It never blocks, whatever has taken the file's place, and leaves out what has
// gone: other rounds may work in a directory that they share.
func (c *chooser) add(put putFile, name string) (bool, error) {
	file, err := c.root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // it is only read
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	if c.base != "" && same(file, info, filepath.Join(c.base, name)) {
		return false, nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	return true, put(name, file)
}

// same reports whether another file certainly has the same content.
func same(file *os.File, info fs.FileInfo, other string) bool {
	is, err := os.Lstat(other)
	if err != nil || !is.Mode().IsRegular() || is.Size() != info.Size() {
		return false
	}
	old, err := os.Open(other)
	if err != nil {
		return false
	}
	defer func() { _ = old.Close() }() // it is only read
	a, b := make([]byte, 32<<10), make([]byte, 32<<10)
	for {
		n, err := io.ReadFull(file, a)
		m, _ := io.ReadFull(old, b) // what it has not read differs
		if !bytes.Equal(a[:n], b[:m]) {
			return false
		}
		if err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}

// reach compares the path of a file or directory with a pattern: whole if the pattern names it or a directory above it,
// part if something in it may be named. It follows all places of the pattern at once: one with many ** would take for ever
// otherwise.
func reach(pattern, name []string) (whole, part bool) {
	at := skipAny(pattern, make([]bool, len(pattern)+1), 0)
	for _, element := range name {
		if at[len(pattern)] {
			return true, true
		}
		next := make([]bool, len(pattern)+1)
		for i, p := range pattern {
			if !at[i] {
				continue
			}
			if p == anyDirectories {
				next = skipAny(pattern, next, i)
			} else if ok, err := path.Match(p, element); ok && err == nil {
				next = skipAny(pattern, next, i+1)
			}
		}
		at = next
	}
	return at[len(pattern)], slices.Contains(at, true)
}

// anyDirectories stands for any number of directories, also for none.
const anyDirectories = "**"

// skipAny adds a place of the pattern, and those that follow if it stands for nothing there.
func skipAny(pattern []string, at []bool, i int) []bool {
	at[i] = true
	for ; i < len(pattern) && pattern[i] == anyDirectories; i++ {
		at[i+1] = true
	}
	return at
}

// UnpackFiles reads what [PackFiles] has packed, and calls f for each file. Its name is a path below a directory, and none
// comes twice. f reads size bytes of content, or returns an error.
func UnpackFiles(ctx context.Context, r io.Reader, f func(name string, mode fs.FileMode, size int64, content io.Reader) error) (err error) {
	opts := DefaultOptions()
	opts.maxRatio = math.MaxInt // nothing that a round may write is a bomb: the other limits hold
	t := newTree(nil, &budget{opts: &opts})
	defer survive(&err)
	left := opts.MaxBytes
	err = entries(ctx, t.budget, r, task.FormatTarZst, func(hdr *tar.Header, content io.Reader) error {
		name, err := t.cleanName(hdr.Name)
		switch {
		case err != nil:
			return err
		case hdr.Typeflag != tar.TypeReg || name != hdr.Name || hdr.FileInfo().Mode()&^fs.ModePerm != 0 || sparse(hdr):
			return refused(hdr.Name, "is no file that a round returns")
		case hdr.Size > opts.MaxFileBytes || hdr.Size > left:
			return &limitError{of: limitFileBytes, most: opts.MaxFileBytes, where: name}
		}
		left -= hdr.Size
		if err := t.takeName(name); err != nil {
			return err
		}
		if err := t.budget.addEntry(); err != nil {
			return err
		}
		return f(name, hdr.FileInfo().Mode().Perm(), hdr.Size, content)
	})
	if err != nil {
		return fmt.Errorf("unpack files: %w", archiveError(ctx, err))
	}
	return nil
}
