package worker

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/store"
)

const (
	// noteTimeout bounds one attempt to write a line at once.
	noteTimeout = 2 * time.Second
	// longestLine bounds what a task's input or program can make a line of.
	longestLine = 1024
)

// journal collects the worker's lines for one task's log. They go along with
// the report, which costs nothing, or are written at once, for what takes long.
type journal struct {
	worker string
	store  *store.Store
	task   *store.Claimed
	clock  redisClock
	log    zerolog.Logger

	mu     sync.Mutex // a fetch may speak from a goroutine of its own
	lines  []store.Line
	failed bool // writing at once did not work; not tried again
}

// add keeps a line for the report.
func (j *journal) add(text string) {
	text = oneLine(text)
	j.log.Info().Msg(text)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, store.Line{At: j.clock.now(), Text: text})
}

// write adds a line and writes all there are at once. If that fails, they
// wait for the report.
func (j *journal) write(ctx context.Context, text string) {
	j.add(text)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	if err := j.store.Note(ctx, j.worker, &j.task.Task, j.lines...); err != nil {
		j.failed = true
		j.log.Warn().Err(err).Msgf("could not write the log of task %d, it will go along with the report", j.task.ID)
		return
	}
	j.lines = nil
}

// take returns the lines not written yet.
func (j *journal) take() []store.Line {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// oneLine makes a text from a task fit for one line of a log.
func oneLine(text string) string { return clean.Line(text, longestLine) }
