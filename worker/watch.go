package worker

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/control"
	"github.com/tdf-go/tdf/internal/store"
)

// watchInterval is how often it is looked whether a program says how far it has come.
const watchInterval = time.Second

// watch passes on what programs say through their control files, until ctx ends.
func (w *Worker) watch(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if w.shown.Load() != int64(w.busy()) {
			w.signalChange() // so that the registry is never much behind
		}
		for _, s := range w.slots {
			if r := s.current(); r != nil {
				r.passProgress(ctx)
			}
		}
	}
}

// passProgress records what the program says of its progress, if that is new.
func (r *round) passProgress(ctx context.Context) {
	p, changed := r.pollProgress()
	if !changed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	if err := r.worker.opts.Store.Progress(ctx, &r.task.Task, p); err != nil {
		r.log.Debug().Err(err).Msg("could not record the progress")
	}
}

func (r *round) pollProgress() (store.Progress, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.control == nil {
		return r.told.take()
	}
	p, changed, err := r.control.Poll()
	if err != nil {
		r.log.Debug().Err(err).Msg("could not read the control file")
		return store.Progress{}, false
	}
	return store.Progress(p), changed
}

// told is progress that a handler tells by a call.
type told struct {
	progress store.Progress
	fresh    bool
}

func (t *told) take() (store.Progress, bool) {
	fresh := t.fresh
	t.fresh = false
	return t.progress, fresh
}

// listen begins to read the program's control file.
func (r *round) listen(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.control = &control.Reader{Path: path}
	if _, _, other := r.worker.owner(); other {
		r.control.As = r.worker.opts.Container.AsOwner
	}
}

// closeControl reads the control file for the last time. It puts into the task's
// log what the program said that was not understood.
func (r *round) closeControl() error {
	r.mu.Lock()
	reader := r.control
	r.control = nil // its round is over
	r.mu.Unlock()
	if reader == nil {
		return nil
	}
	p, changed, err := reader.Poll()
	if err != nil {
		r.journal.add("control file: " + err.Error())
	}
	if changed { // goes along with the report
		r.mu.Lock()
		r.told = told{store.Progress(p), true}
		r.mu.Unlock()
	}
	for _, warning := range reader.Warnings() {
		r.journal.add("control file: " + warning)
	}
	return r.readResult(reader)
}
