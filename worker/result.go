package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/control"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// SetResult says what the job brings to the tasks of its plan that need it, in
// place of what it writes to Stdout; the last call counts. It may have as many
// bytes as the worker's OutputLimit: with more the round is a failure.
func (j *Job) SetResult(text string) {
	j.round.mu.Lock()
	defer j.round.mu.Unlock()
	j.round.said = &text
}

// takeSaid returns what a handler gave to SetResult, nil for nothing.
func (r *round) takeSaid() (*string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if limit := r.worker.opts.OutputLimit; r.said != nil && int64(len(*r.said)) > limit {
		return nil, fmt.Errorf("the handler's result has %d bytes, and output_limit is %d: return less, or raise the limit",
			len(*r.said), limit)
	}
	return r.said, nil
}

// readResult reads what the program said of its result in the control file. That it
// cannot be read is an error where others may need it.
func (r *round) readResult(file *control.Reader) error {
	text, ok, err := file.Result()
	if err != nil && r.task.Plan > 0 {
		return fmt.Errorf("no result: %w", err)
	}
	if err != nil {
		r.journal.add("control file: no result: " + err.Error())
	}
	if ok {
		r.said = &text
	}
	return nil
}

// refuseCut makes a success a failure whose output was cut although other tasks
// need it. One that is added while this is reported finds the output cut itself.
func (r *round) refuseCut(ctx context.Context, end *ending) {
	res := &end.result
	if r.task.Plan == 0 || end.event != statemachine.Report || !res.stdout.Truncated || res.brought != nil {
		return
	}
	if text, _ := end.errorText(r.task.FailOn); text == "" && r.feeds(ctx) {
		end.fails(nil, &cutError{r.worker.opts.OutputLimit})
	}
}

// feeds asks whether other tasks need this one, as long as ctx leaves time. Whoever
// does not know says no: those that need it will see that its output was cut.
func (r *round) feeds(ctx context.Context) bool {
	lane := r.worker.reporting
	for {
		found, err := r.worker.opts.Store.Fields(ctx, []int64{r.task.ID}, "feeds")
		if err == nil {
			lane.answered()
			return found[0]["feeds"] == "1"
		}
		if ctx.Err() != nil || !errors.Is(err, store.ErrUnreachable) {
			r.log.Warn().Err(err).Msgf("could not ask whether other tasks need task %d, whose output was cut", r.task.ID)
			return false
		}
		timing.Pause(ctx, lane.failed(err))
	}
}
