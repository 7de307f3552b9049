package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/task"
)

// errNoDirectory is why a handler returns no files.
var errNoDirectory error = &argumentError{"a Go handler has no directory to return files from: leave return out"}

// returnFiles keeps the files that the task asks for, before the end of the round is reported: a success is one only
// with them. err is how the round ended, and what is returned is how it ends now.
func (r *round) returnFiles(ctx context.Context, v fetch.Version, res *result, err error) error {
	if !r.over || res.Cause != shim.Ended {
		return err // somebody has stopped it, and it is not known whether the files are whole
	}
	text, _ := (&ending{result: *res}).errorText(r.Spec.FailOn)
	success := err == nil && text == "" && !r.forbidsCut(res)
	if !success && r.Spec.ReturnOn != task.ReturnOnEnd {
		return err
	}
	failed := r.keepFiles(ctx, v.Dir, res, success)
	switch {
	case ctx.Err() != nil:
		res.Cause, res.files = shim.Cancelled, task.Files{} // what stops the round stops it here too
	case failed != nil && success:
		return failed
	case failed != nil: // it has failed by itself, and that counts
		r.journal.add(failed.Error())
	}
	return err
}

// keepFiles packs the files and hands them to the site. A success needs one for each name.
func (r *round) keepFiles(ctx context.Context, base string, res *result, success bool) error {
	p, err := disk.NewScratch(r.worker.privateDir())
	if err != nil {
		return notReturned(err)
	}
	defer func() { _ = p.Close() }() // nothing of it stays
	count, missing, err := r.packFiles(ctx, p, base)
	if err == nil && success && len(missing) > 0 {
		err = fmt.Errorf("return: no file of the round matches %s; let the program write one, or leave the name out",
			strings.Join(missing, ", "))
		if r.Spec.ReturnOn != task.ReturnOnEnd {
			return err
		}
	}
	if count > 0 {
		files, failed := r.putFiles(ctx, p, count, true)
		if res.files = files; failed != nil {
			err = errors.Join(err, notReturned(failed))
		}
	}
	return err
}

// packFiles packs the files as the user who has written them. It returns how many they are, and the names for which there was none.
func (r *round) packFiles(ctx context.Context, p *disk.Scratch, base string) (count int, missing []string, err error) {
	if base == r.dir { // a program put there by hand, which runs where it is
		base = ""
	}
	err = r.worker.opts.container.AsOwner(func() error {
		count, missing, err = fetch.PackFiles(ctx, p, r.dir, base, r.Spec.Return)
		return err
	})
	switch {
	case disk.Full(err):
		return 0, nil, notReturned(err)
	case err != nil:
		return 0, nil, fmt.Errorf("could not return files: %w", err)
	}
	return count, missing, nil
}

// putFiles hands what was packed to the site.
func (r *round) putFiles(ctx context.Context, p *disk.Scratch, count int, asked bool) (task.Files, error) {
	files := task.Files{SHA256: p.SHA256(), Bytes: p.Size(), Count: count}
	put := func() error { return r.worker.opts.Backend.PutFiles(ctx, files.SHA256, files.Bytes, p, asked) }
	var err error
	if asked {
		err = r.worker.reporting.ask(ctx, put)
	} else { // nobody waits for it
		err = put()
	}
	if err != nil {
		return task.Files{}, err
	}
	return files, nil
}

// keepWhole keeps all of a stream of which the record has only an excerpt, or more of it than the record has, and closes it. Failing to is
// no failure of the round, unless the task says so (see refuseCut).
func (r *round) keepWhole(ctx context.Context, s taken, res *result) {
	files, lost := map[string]*os.File{}, false
	for name, stream := range map[string]*capture.Stream{"output": s.out, "error": s.err} {
		whole, err := stream.Whole()
		if err != nil {
			r.journal.add(fmt.Sprintf("not all of %s is kept: %v", name, err))
			lost, name = true, name+capture.CutSuffix
		}
		if whole != nil {
			defer func() { _ = whole.Close() }() // nothing of it stays
			files[name] = whole
		}
	}
	if len(files) == 0 || ctx.Err() != nil {
		return
	}
	p, err := disk.NewScratch(r.worker.privateDir())
	if err == nil {
		defer func() { _ = p.Close() }() // nor of it
		err = fetch.PackNamed(ctx, p, files)
	}
	if err == nil {
		res.whole, err = r.putFiles(ctx, p, len(files), false)
	}
	if err != nil {
		r.journal.add("not all of the output is kept: " + err.Error())
	}
	res.inFull = err == nil && !lost
}

// notReturned is the error of a round whose program has done its part.
func notReturned(err error) error { return &ownError{"could not return files: " + err.Error()} }
