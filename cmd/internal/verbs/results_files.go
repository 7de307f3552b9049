package verbs

import (
	"context"
	"errors"
	"io"
	"io/fs"

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

// unpack gives a sink the files of a task, and notes if they are not there any more.
func (r *resultRow) unpack(read readFiles, f eachFile) error {
	if r.Files.Count == 0 {
		return nil
	}
	err := read(r.Files, f)
	if errors.Is(err, task.ErrNoBlob) {
		r.Partial = append(r.Partial, filesFolder)
		return nil
	}
	return err
}

// filesFolder is the folder of the files that a task has returned, in that of the task.
const filesFolder = "files"
