package spool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

// Entry is one thing to deliver.
type Entry struct {
	// Name is what it was put under.
	Name string
	// Stored is when, on the clock of this host.
	Stored time.Time
	// Size is that of the data, in bytes.
	Size int64

	order uint64
	spool *Spool
}

// Data reads the entry. The error is a [DamagedError] if it was removed or has
// become unreadable since All.
func (e *Entry) Data() ([]byte, error) {
	if err := e.spool.use(); err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if _, err := e.spool.read(fileName(e.Name)+ending, &data); err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// All lists the entries, oldest first. It reads each of them once, so that what
// it lists is whole, but keeps none in memory. Files that are no whole entries
// are left out and left alone; the error joins one [DamagedError] for each, and
// the entries are valid beside it.
func (s *Spool) All() ([]Entry, error) {
	if err := s.use(); err != nil {
		return nil, err
	}
	files, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("look into spool: %w", err)
	}
	entries, problems := s.look(files)
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.order, b.order) })
	return entries, errors.Join(problems...)
}

func (s *Spool) look(files []fs.DirEntry) (entries []Entry, problems []error) {
	for _, f := range files {
		switch file := f.Name(); {
		case file == lockFile || isTemp(file):
		case !isEntry(file):
			problems = append(problems, s.damaged(file, "is none of the spool", nil))
		default:
			h, err := s.read(file, io.Discard)
			switch {
			case errors.Is(err, fs.ErrNotExist): // removed just now
			case err != nil:
				problems = append(problems, err)
			default:
				entries = append(entries, Entry{Name: h.Name, Stored: h.Stored, Size: h.Size, order: h.Order, spool: s})
			}
		}
	}
	return entries, problems
}
