package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
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
	success := err == nil && text == "" && !res.forbidden(r.Spec.OnCut)
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

// keepFiles collects the files and hands them to the site, or to the destination of the task. A success needs one for each name.
func (r *round) keepFiles(ctx context.Context, base string, res *result, success bool) error {
	if base == r.dir { // a program put there by hand, which runs where it is
		base = ""
	}
	collect := r.packFiles
	if r.Spec.ReturnTo != "" {
		collect = r.collectFiles
	}
	p, err := collect(ctx, base)
	res.unreturned = err != nil // a file that the program did not write is not lost
	switch {
	case disk.Full(err), errors.Is(err, fetch.ErrUndelivered):
		return notReturned(err)
	case is[*ownError](err):
		return err
	case err != nil:
		return fmt.Errorf("could not return files: %w", err)
	}
	defer p.close(ctx)
	if success && len(p.missing) > 0 {
		err = fmt.Errorf("return: no file of the round matches %s; let the program write one, or leave the name out",
			strings.Join(p.missing, ", "))
		if r.Spec.ReturnOn != task.ReturnOnEnd {
			return err
		}
	}
	if p.count > 0 {
		files, failed := p.send(ctx)
		if res.files = files; failed != nil {
			res.unreturned = true
			err = errors.Join(err, notReturned(failed))
		}
	}
	return err
}

// parcel is what a round returns, before it was sent.
type parcel struct {
	count   int
	missing []string // the names for which there was no file
	send    func(context.Context) (task.Files, error)
	close   func(context.Context) // nothing of it stays
}

// packFiles packs the files for the site as the user who has written them.
func (r *round) packFiles(ctx context.Context, base string) (*parcel, error) {
	s, err := disk.NewScratch(r.worker.privateDir())
	if err != nil {
		return nil, notReturned(err)
	}
	p := &parcel{close: func(context.Context) { _ = s.Close() }}
	err = r.worker.opts.container.AsOwner(func() error {
		p.count, p.missing, err = fetch.PackFiles(ctx, s, r.dir, base, r.Spec.Return)
		return err
	})
	if err != nil {
		p.close(ctx)
		return nil, err
	}
	p.send = func(ctx context.Context) (task.Files, error) { return r.putFiles(ctx, s, p.count, true) }
	return p, nil
}

// collectFiles collects the files for the destination that the task names.
func (r *round) collectFiles(ctx context.Context, base string) (*parcel, error) {
	return r.collect(ctx, fetch.Return{Dir: r.dir, Base: base, Patterns: r.Spec.Return})
}

// collect completes what is to go to the destination, and collects it.
func (r *round) collect(ctx context.Context, what fetch.Return) (*parcel, error) {
	w := r.worker
	f, ok := w.opts.Programs.(*fetch.Fetcher)
	if !ok {
		return nil, notReturned(errors.New("this worker does not fetch programs by itself, and returns files to Redis only"))
	}
	if err := w.ensurePrivateDir(); err != nil {
		return nil, notReturned(err)
	}
	what.To, what.Task, what.Round, what.As, what.Scratch = r.Spec.ReturnTo, r.Task.ID, r.Task.Round, w.opts.container.AsOwner, w.privateDir()
	p, err := f.Collect(ctx, what)
	if err != nil {
		return nil, err
	}
	return &parcel{count: p.Count, missing: p.Missing, send: p.Deliver, close: func(ctx context.Context) {
		if err := p.Close(ctx); err != nil {
			r.journal.add("could not remove what was on its way: " + err.Error())
		}
	}}, nil
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
	var each []map[string]*os.File // in Redis a blob, so that one stream takes no room from the other
	put := r.putStreams
	if r.Spec.ReturnTo != "" {
		put = r.deliverStreams
	}
	for i, stream := range [...]*capture.Stream{s.out, s.err} {
		name := streamNames[i]
		whole, err := stream.Whole()
		if err != nil {
			r.journal.add(fmt.Sprintf("not all of %s is kept: %v", name, err))
			name += capture.CutSuffix
		}
		if whole == nil {
			continue
		}
		defer func() { _ = whole.Close() }()      // nothing of it stays
		if r.Spec.ReturnTo != "" && each != nil { // one directory
			each[0][name] = whole
		} else {
			each = append(each, map[string]*os.File{name: whole})
		}
	}
	for _, streams := range each {
		if ctx.Err() != nil {
			return
		}
		files, err := put(ctx, streams)
		names := slices.Sorted(maps.Keys(streams))
		if err != nil {
			r.journal.add(fmt.Sprintf("not all of %s is kept: %v", strings.Join(names, " and "), err))
			continue
		}
		res.whole, res.full = append(res.whole, files.Text()), append(res.full, names...)
	}
}

// deliverStreams hands streams to the destination that the task names.
func (r *round) deliverStreams(ctx context.Context, streams map[string]*os.File) (files task.Files, err error) {
	p, err := r.collect(ctx, fetch.Return{Streams: streams})
	if err != nil {
		return files, err
	}
	defer p.close(ctx)
	return p.send(ctx)
}

// putStreams packs streams and hands them to the site.
func (r *round) putStreams(ctx context.Context, streams map[string]*os.File) (files task.Files, err error) {
	p, err := disk.NewScratch(r.worker.privateDir())
	if err != nil {
		return files, err
	}
	defer func() { _ = p.Close() }() // nothing of it stays
	if err = fetch.PackNamed(ctx, p, streams); err != nil {
		return files, err
	}
	return r.putFiles(ctx, p, len(streams), false)
}

// notReturned is the error of a round whose program has done its part.
func notReturned(err error) error { return &ownError{"could not return files: " + err.Error()} }
