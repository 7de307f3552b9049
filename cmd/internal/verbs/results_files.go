package verbs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/returned"
	"github.com/tdf-go/tdf/task"
)

// returned reads from Redis, or from the directory that the files were returned to. An archive has no files.
func (s *session) returned(ctx context.Context) returned.Read {
	from := returned.Source{Manager: s.manager, Local: true, Damaged: func(files task.Files, err error) {
		s.warn("files %s: %s", files.Text(), cli.Safe(err.Error()))
	}}
	return from.Reader(ctx)
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
func (r *resultRow) write(read returned.Read, add returned.Each) error {
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
	whole, full, err := read.Streams(r.Whole, add)
	if err != nil {
		return err
	}
	r.missing = slices.DeleteFunc(slices.Clone(r.missing), func(name string) bool { return slices.Contains(full, name) })
	if whole == nil {
		r.away = returned.Place(r.Whole)
	}
	var object bytes.Buffer
	if err := r.writeJSON(&object); err != nil {
		return err
	}
	for _, file := range [][2]string{{returned.Output, r.output}, {returned.Error, r.stderr}, {taskFile, object.String()}} {
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
