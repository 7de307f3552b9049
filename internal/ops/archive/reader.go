package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Reader reads the records of a namespace from some directories: the segments, and those that still grow as far as they are. It
// holds one segment at a time in memory.
type Reader struct {
	// Dirs are the directories; servers may have one of their own each.
	Dirs      []string
	Namespace string
	// Wants, if set, says whether tasks with ids from first to last are looked for; what has none is not read.
	Wants func(first, last int64) bool
	// Damaged is told of everything that is wrong; reading goes on.
	Damaged func(*DamageError)
	// Verify compares each segment with its manifest.
	Verify bool
}

// Entry is a record as it is found. It is valid until the next one.
type Entry struct {
	Head

	// File is where it is.
	File string
	text []byte
	at   position
}

// position is where an entry is: the segment by its place among all, and how many come before it there.
type position struct{ segment, number int }

// Record reads all of it.
func (e *Entry) Record() (Record, error) {
	r, err := ParseRecord(e.text)
	if err != nil {
		return r, fmt.Errorf("%s: %w", e.File, err)
	}
	return r, nil
}

// Line is the record as it is in the segment, without the end of the line.
func (e *Entry) Line() []byte { return e.text }

// segment is one to read.
type segment struct {
	path string
	// grows says that it was not sealed when it was looked for; then its size counts, so that each pass reads the same.
	grows bool
	size  int64
}

// Each calls visit for each record, also for those that are there more than once, in the order of the directories and in each
// of them in that in which segments were begun. It returns the error of visit or of ctx, or that a directory cannot be read.
func (r *Reader) Each(ctx context.Context, visit func(*Entry) error) error {
	all, err := r.segments()
	if err != nil {
		return err
	}
	return r.pass(ctx, all, r.Damaged, visit)
}

// segments are all to be read.
func (r *Reader) segments() ([]segment, error) {
	var all []segment
	for _, dir := range r.Dirs {
		sealed, parts, err := listed(dir, r.Namespace)
		if err != nil {
			return nil, err
		}
		for _, name := range sealed {
			all = append(all, segment{path: filepath.Join(dir, name)})
		}
		for _, name := range parts {
			s := segment{path: filepath.Join(dir, name), grows: true}
			if info, err := os.Stat(s.path + partEnd); err == nil {
				s.size = info.Size()
			} else if info, err := os.Stat(s.path); err == nil { // sealed just now
				s.size = info.Size()
			}
			all = append(all, s)
		}
		if err := r.orphans(dir, sealed, parts); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// listed is names, also while segments are sealed: one that is renamed while a directory is listed may be missed once, and not twice.
func listed(dir, namespace string) (sealed, parts []string, err error) {
	for range 2 {
		s, p, err := names(dir, namespace)
		if err != nil {
			return nil, nil, err
		}
		sealed, parts = append(sealed, s...), append(parts, p...)
	}
	slices.Sort(sealed)
	slices.Sort(parts)
	sealed, parts = slices.Compact(sealed), slices.Compact(parts)
	isSealed := func(name string) bool { _, is := slices.BinarySearch(sealed, name); return is }
	return sealed, slices.DeleteFunc(parts, isSealed), nil
}

// orphans looks for manifests without a segment.
func (r *Reader) orphans(dir string, lists ...[]string) error {
	if !r.Verify {
		return nil
	}
	there := map[string]bool{}
	for _, list := range lists {
		for _, name := range list {
			there[name] = true
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), manifestEnd)
		if !is {
			continue
		}
		found := segmentName.FindStringSubmatch(name)
		if found == nil || found[1] != r.Namespace || there[name] {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) { // not sealed just now either
			r.Damaged(&DamageError{Path: filepath.Join(dir, name), Problem: "is missing, and its manifest is there", Remedy: restoreRemedy})
		}
	}
	return nil
}

// pass reads segments once.
func (r *Reader) pass(ctx context.Context, all []segment, damaged func(*DamageError), visit func(*Entry) error) error {
	d, err := newDecoder()
	if err != nil {
		return err
	}
	defer d.close()
	for i, s := range all {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		one := reading{r: r, d: d, damaged: damaged, visit: visit, segment: s, number: i}
		if err := one.read(ctx); err != nil {
			return err
		}
	}
	return nil
}
