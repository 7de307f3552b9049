// Package returned reads what rounds have written and returned, from their records and from what is kept beside these.
package returned

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// Each gets a file that a round has returned, and its content.
type Each func(name string, mode fs.FileMode, size int64, content io.Reader) error

// Read reads what a round has returned. The error matches [task.ErrNoBlob], and f was not called, if that is gone, or not what
// the round returned.
type Read func(files task.Files, f Each) error

// Source says where to read what was returned.
type Source struct {
	// Manager reads what Redis keeps; nil if nothing does, as for an archive.
	Manager *manager.Manager
	// Local lets directories of this host be read that files were returned to. Records name them: read them with the rights of
	// whoever asks.
	Local bool
	// Damaged is told of files that cannot be unpacked.
	Damaged func(files task.Files, err error)
}

// Reader reads from there until ctx ends.
func (s Source) Reader(ctx context.Context) Read {
	return func(files task.Files, f Each) (err error) {
		if files.To == "" && s.Manager == nil || files.To != "" && !s.Local {
			return task.ErrNoBlob
		}
		packed, err := disk.NewScratch("")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, packed.Close()) }()
		if files.To != "" {
			err = packDirectory(ctx, files, packed)
		} else {
			err = s.Manager.Files(ctx, files, packed)
		}
		if err != nil {
			return err
		}
		read := func(f Each) error {
			_, err := packed.Seek(0, io.SeekStart)
			if err == nil {
				err = fetch.UnpackFiles(ctx, packed, f)
			}
			return err
		}
		// All of it is tried first: what a hostile worker has put there must not end the others.
		if err = read(func(_ string, _ fs.FileMode, _ int64, content io.Reader) error {
			_, err := io.Copy(io.Discard, content)
			return err
		}); err != nil {
			s.Damaged(files, err)
			return task.ErrNoBlob
		}
		return read(f)
	}
}

// packDirectory packs the directory that files were returned to, if this host sees it and it has as many. The error matches
// [task.ErrNoBlob].
func packDirectory(ctx context.Context, files task.Files, w io.Writer) error {
	count, err := fetch.PackDelivered(ctx, w, files.To)
	if err == nil && count != files.Count {
		err = fmt.Errorf("%d files are there, and the round has returned %d", count, files.Count)
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", task.ErrNoBlob, err)
	}
	return err
}

// Streams gives f the streams of a round of which its record has an excerpt, each by its name. It returns which there were, and
// which of them in full.
func (read Read) Streams(whole []task.Files, f Each) (names, full []string, err error) {
	for _, files := range whole {
		err = read(files, func(file string, mode fs.FileMode, size int64, content io.Reader) error {
			name, cut := strings.CutSuffix(file, capture.CutSuffix)
			if name != Output && name != Error || slices.Contains(names, name) {
				return nil
			}
			if names = append(names, name); !cut {
				full = append(full, name)
			}
			return f(name, mode, size, content)
		})
		if err != nil && !errors.Is(err, task.ErrNoBlob) {
			return names, full, err
		}
	}
	return names, full, nil
}

// Stream writes to w what is kept of a stream beside the record of its round. It reports whether that is anything, and all.
func (read Read) Stream(r *task.Round, stream string, w io.Writer) (found, full bool, err error) {
	names, whole, err := read.Streams(r.Whole, func(name string, _ fs.FileMode, _ int64, content io.Reader) error {
		if name != stream {
			return nil
		}
		_, err := io.Copy(w, content)
		return err
	})
	return slices.Contains(names, stream), slices.Contains(whole, stream), err
}
