package verbs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

// eachFile gets a file that a round has returned, and its content.
type eachFile func(name string, mode fs.FileMode, size int64, content io.Reader) error

// readFiles reads what a round has returned. The error matches [task.ErrNoBlob], and f was not called, if it is not there any more, or
// not whole.
type readFiles func(files task.Files, f eachFile) error

// returnedFiles reads from Redis. An archive has no files.
func (s *session) returnedFiles(ctx context.Context) readFiles {
	if s.manager == nil {
		return func(task.Files, eachFile) error { return task.ErrNoBlob }
	}
	return func(files task.Files, f eachFile) (err error) {
		packed, err := disk.NewScratch("")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, packed.Close()) }()
		if err = s.manager.Files(ctx, files, packed); err != nil {
			return err
		}
		if _, err = packed.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return fetch.UnpackFiles(ctx, packed, f)
	}
}

// wholeStreams reads the streams of a round of which its record has an excerpt, and gives f each of them by its name. It returns
// which there were.
func wholeStreams(read readFiles, whole task.Files, f eachFile) (names []string, err error) {
	if whole.Count == 0 {
		return nil, nil
	}
	err = read(whole, func(name string, mode fs.FileMode, size int64, content io.Reader) error {
		if name != outputStream && name != errorStream {
			return nil
		}
		names = append(names, name)
		return f(name, mode, size, content)
	})
	if errors.Is(err, task.ErrNoBlob) {
		err = nil
	}
	return names, err
}

// unpackStreams gives a sink the streams of a task that its record has an excerpt of. What a sink has whole is not missing.
func (r *resultRow) unpackStreams(read readFiles, f eachFile) (names []string, err error) {
	names, err = wholeStreams(read, r.whole, f)
	for _, name := range names {
		if i := slices.Index(r.missing, name); i >= 0 {
			r.missing = slices.Delete(slices.Clone(r.missing), i, i+1)
		}
	}
	return names, err
}

// unpack gives a sink the files of a task, and notes if they are not there any more.
func (r *resultRow) unpack(read readFiles, f eachFile) error {
	if r.Files.Count == 0 {
		return nil
	}
	err := read(r.Files, f)
	if errors.Is(err, task.ErrNoBlob) {
		r.Partial, r.missing = append(r.Partial, filesFolder), append(r.missing, filesFolder)
		return nil
	}
	return err
}

// filesFolder is the folder of the files that a task has returned, in that of the task.
const filesFolder = "files"
