package worker

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/control"
	"github.com/tdf-go/tdf/statemachine"
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
				r.passNews(ctx)
			}
		}
	}
}

// passNews records what the program says of its progress and its attributes, if that is new.
func (r *round) passNews(ctx context.Context) {
	var news News
	if p, changed := r.pollProgress(); changed {
		news.Progress = &p
	}
	news.Meta = r.newMeta()
	if news.Progress == nil && len(news.Meta) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	err := r.tell(ctx, news)
	if refused, ok := errors.AsType[*statemachine.FieldError](err); ok {
		r.journal.add(refused.Error())
		err = nil // it will not be taken the next time either
	}
	if err != nil {
		r.log.Debug("could not record the progress", "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.metaTold == nil {
		r.metaTold = map[string]string{}
	}
	maps.Copy(r.metaTold, news.Meta)
}

// newMeta are the attributes that the program has set and nobody has recorded yet, as far as it was polled.
func (r *round) newMeta() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.handled != nil:
		r.meta = r.handled.saidMeta()
	case r.control != nil:
		r.meta = r.control.Attrs()
	}
	fresh := maps.Clone(r.meta)
	maps.DeleteFunc(fresh, func(name, text string) bool {
		told, is := r.metaTold[name]
		return is && told == text
	})
	return fresh
}

func (r *round) tell(ctx context.Context, news News) error {
	return r.worker.opts.Backend.Tell(ctx, r.worker.opts.Name, &r.Task, news)
}

func (r *round) pollProgress() (Progress, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.handled != nil:
		return r.handled.takeProgress()
	case r.control == nil:
		last := r.last
		r.last.fresh = false
		return last.progress, last.fresh
	}
	p, changed, err := r.control.Poll()
	if err != nil {
		r.log.Debug("could not read the control file", "error", err)
		return Progress{}, false
	}
	return Progress(p), changed
}

// listen begins to read the program's control file.
func (r *round) listen(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.control = &control.Reader{Path: path, Attr: checkAttr}
	if _, _, other := r.worker.owner(); other {
		r.control.As = r.worker.opts.container.AsOwner
	}
}

// closeControl reads the control file for the last time. It puts into the task's
// log what the program said that was not understood.
func (r *round) closeControl() error {
	r.mu.Lock()
	reader := r.control
	r.control = nil // its round is over
	r.mu.Unlock()
	if reader == nil || r.alone { // the file is in the private directory
		return nil
	}
	p, changed, err := reader.Poll()
	if err != nil {
		r.journal.add("control file: " + err.Error())
	}
	r.mu.Lock()
	if r.meta = reader.Attrs(); changed { // goes along with the report
		r.last = told{Progress(p), true}
	}
	r.mu.Unlock()
	err = r.readResult(reader)
	for _, warning := range reader.Warnings() {
		r.journal.add("control file: " + warning)
	}
	return err
}

// streams are what a round writes, while it writes.
type streams struct{ out, err *capture.Excerpt }

// liveInterval is the time between two looks at what a followed round wrote.
const liveInterval = 200 * time.Millisecond

// follow sends what the tasks write that somebody reads just now, and no longer
// what nobody does.
func (w *Worker) follow(ctx context.Context, tasks []Followed) {
	since := map[int64]statemachine.Time{}
	for _, f := range tasks {
		since[f.ID] = f.Since
	}
	for _, s := range w.slots {
		r := s.current()
		if r == nil {
			continue
		}
		if r.beginSending(since[r.Task.ID]) {
			w.background.Go(func() { r.sendLive(ctx, s) })
		}
	}
}

// beginSending notes since when the round is followed, 0 for not; it reports
// whether somebody has to begin to send.
func (r *round) beginSending(since statemachine.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	begin := since != 0 && !r.sending
	r.followed, r.sending = since, r.sending || begin
	return begin
}

// stillFollowed is since when the round is followed. Told that it is not, the
// sender ends.
func (r *round) stillFollowed() statemachine.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending = r.followed != 0
	return r.followed
}

// sendLive sends what the round writes as long as it runs and somebody follows,
// and again from the beginning when another reader begins. What it does not
// send stands in the record.
func (r *round) sendLive(ctx context.Context, s *slot) {
	var since statemachine.Time
	var sent map[string]int64
	for ctx.Err() == nil && s.current() == r {
		now := r.stillFollowed()
		if now == 0 {
			return
		}
		if now != since {
			since, sent = now, map[string]int64{}
		}
		full, err := r.sendNew(ctx, sent)
		if err != nil {
			r.log.Debug("could not send live output; trying again", "error", err)
		}
		if !full || err != nil {
			timing.Pause(ctx, liveInterval)
		}
	}
}

// sendNew sends at most one chunk of each stream; it reports whether there may
// be more already.
func (r *round) sendNew(ctx context.Context, sent map[string]int64) (full bool, err error) {
	live := r.streams.Load()
	if live == nil {
		return false, nil
	}
	var chunks []Chunk
	for name, e := range map[string]*capture.Excerpt{"output": live.out, "error": live.err} {
		data, at := e.From(sent[name], MaxChunk)
		if len(data) == 0 {
			continue
		}
		full = full || len(data) == MaxChunk
		chunks = append(chunks, Chunk{Stream: name, Offset: at, Data: data})
	}
	if len(chunks) == 0 {
		return false, nil
	}
	if err := r.tell(ctx, News{Chunks: chunks}); err != nil {
		return false, err
	}
	for _, c := range chunks {
		sent[c.Stream] = c.Offset + int64(len(c.Data))
	}
	return full, nil
}
