package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/task"
)

// eachFile gets a file that a round has returned, and its content.
type eachFile func(name string, mode fs.FileMode, size int64, content io.Reader) error

// readFiles reads what a round has returned. The error matches [task.ErrNoBlob], and f was not called, if that is gone, or not what
// the round returned.
type readFiles func(files task.Files, f eachFile) error

// returnedFiles reads from Redis, or from the directory that the files were returned to. An archive has no files.
func (s *session) returnedFiles(ctx context.Context) readFiles {
	return func(files task.Files, f eachFile) (err error) {
		if s.manager == nil && files.To == "" {
			return task.ErrNoBlob
		}
		packed, err := disk.NewScratch("")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, packed.Close()) }()
		if files.To != "" {
			err = packReturned(ctx, files, packed)
		} else {
			err = s.manager.Files(ctx, files, packed)
		}
		if err != nil {
			return err
		}
		read := func(f eachFile) error {
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
			s.warn("files %s: %s", files.Text(), cli.Safe(err.Error()))
			return task.ErrNoBlob
		}
		return read(f)
	}
}

// packReturned packs the directory that files were returned to, if this host sees it and it has as many. The error matches
// [task.ErrNoBlob].
func packReturned(ctx context.Context, files task.Files, w io.Writer) error {
	count, err := fetch.PackDelivered(ctx, w, files.To)
	if err == nil && count != files.Count {
		err = fmt.Errorf("%d files are there, and the round has returned %d", count, files.Count)
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", task.ErrNoBlob, err)
	}
	return err
}

// wholeStreams reads the streams of a round of which its record has an excerpt, and gives f each of them by its name. It returns
// which there were, and which of them in full.
func wholeStreams(read readFiles, whole []task.Files, f eachFile) (names, full []string, err error) {
	for _, files := range whole {
		err = read(files, func(file string, mode fs.FileMode, size int64, content io.Reader) error {
			name, cut := strings.CutSuffix(file, capture.CutSuffix)
			if name != outputStream && name != errorStream || slices.Contains(names, name) {
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

// placeOf is where streams are that are not in Redis.
func placeOf(whole []task.Files) string {
	if len(whole) == 0 {
		return ""
	}
	return whole[0].To
}

// elsewhere has the tasks of which something is at a destination that cannot be read here, by that.
type elsewhere map[string][]int64

// add takes a task of which something is in a directory of a destination.
func (e elsewhere) add(place string, id int64) {
	to := place[:strings.LastIndexByte(place, '/')]
	if ids := e[to]; len(ids) == 0 || ids[len(ids)-1] != id {
		e[to] = append(ids, id)
	}
}

// note says what lies where.
func (e elsewhere) note(s *session, what, were string) {
	for _, to := range slices.Sorted(maps.Keys(e)) {
		s.noteIDs(e[to], "whose "+what+" cannot be read here: "+were+" returned to "+cli.Safe(to))
	}
}

// write gives add the files of the folder of a task: what it has returned, its streams, whole where they are kept, and its record. It
// notes in the record what of the returned files is gone.
func (r *resultRow) write(read readFiles, add eachFile) error {
	if r.Files.Count > 0 {
		err := read(r.Files, func(name string, mode fs.FileMode, size int64, content io.Reader) error {
			return add(path.Join(filesFolder, name), mode, size, content)
		})
		if errors.Is(err, task.ErrNoBlob) {
			r.Partial, r.missing = append(r.Partial, filesFolder), append(slices.Clone(r.missing), filesFolder)
		} else if err != nil {
			return err
		}
	}
	whole, full, err := wholeStreams(read, r.Whole, add)
	if err != nil {
		return err
	}
	r.missing = slices.DeleteFunc(slices.Clone(r.missing), func(name string) bool { return slices.Contains(full, name) })
	if whole == nil {
		r.away = placeOf(r.Whole)
	}
	var object bytes.Buffer
	if err := r.writeJSON(&object); err != nil {
		return err
	}
	for _, file := range [][2]string{{outputStream, r.output}, {errorStream, r.stderr}, {taskFile, object.String()}} {
		if slices.Contains(whole, file[0]) {
			continue
		}
		if err := add(file[0], 0, int64(len(file[1])), strings.NewReader(file[1])); err != nil {
			return err
		}
	}
	return nil
}

const (
	taskFile    = "task.json" // has the row as JSON
	filesFolder = "files"     // has what the task returned
)
