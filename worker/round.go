package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/process"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// round is one claimed task while this worker holds it.
type round struct {
	worker  *Worker
	task    *store.Claimed
	clock   redisClock
	log     zerolog.Logger
	journal *journal
}

func (w *Worker) newRound(task *store.Claimed, clock redisClock) *round {
	log := w.log.With().Int64("task", task.ID).Int("round", task.Round).Logger()
	log.Info().Msgf("moving task %d: %s -> %s", task.ID, statemachine.Open, statemachine.Running)
	log.Info().Msgf("claimed task %d", task.ID)
	return &round{
		worker: w, task: task, clock: clock, log: log,
		journal: &journal{worker: w.opts.Name, store: w.opts.Store, task: task, clock: clock, log: log},
	}
}

// execute does the round's work and judges it. A panic is the round's error: a
// task that causes one must come to its end, and others have to go on.
func (r *round) execute(ctx context.Context) (end ending) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			r.log.Error().Bytes("stack", debug.Stack()).Msgf("panic while executing task %d: %v", r.task.ID, p)
			end = ending{event: statemachine.Report, result: notRun(),
				trouble: fmt.Sprintf("internal error of worker '%s': %v", r.worker.opts.Name, p)}
		}
	}()
	result, err := r.run(ctx)
	return r.judge(ctx, &result, err)
}

// bounded limits the round to the task's timeout, counted from the claim, and
// to its end_before.
func (r *round) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	t := r.task
	cancels := make([]context.CancelFunc, 0, 2)
	if d, ok := r.clock.until(t.Current.Running.Add(t.Timeout)); ok {
		c, cancel := context.WithTimeoutCause(ctx, d, errOverdue)
		ctx, cancels = c, append(cancels, cancel)
	}
	if d, ok := r.clock.until(t.EndBefore); ok {
		c, cancel := context.WithTimeoutCause(ctx, d, errEndBefore)
		ctx, cancels = c, append(cancels, cancel)
	}
	return ctx, func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// notRun is the result of a program that was not started.
func notRun() process.Result { return process.Result{ExitCode: -1} }

// run fetches the program where necessary and runs it.
func (r *round) run(ctx context.Context) (process.Result, error) {
	if ctx.Err() != nil {
		return process.Result{ExitCode: -1, Cancelled: true}, nil
	}
	t := r.task
	r.journal.add(fmt.Sprintf("executing task %d: %s %s", t.ID, t.Program, inputText(t)))
	dir, err := r.ensure(ctx)
	if err != nil {
		r.log.Error().Err(err).Msgf("could not fetch program '%s'", oneLine(t.Program))
		r.journal.add(fmt.Sprintf("could not fetch program '%s'", t.Program))
		return notRun(), err
	}
	private, err := r.worker.makePrivate(t)
	if err != nil {
		return notRun(), err
	}
	defer r.removePrivate(private)
	result, err := process.Run(ctx, r.spec(dir, private))
	return result, r.explain(err)
}

func (r *round) ensure(ctx context.Context) (string, error) {
	t := r.task
	// The name becomes part of paths here too, so it is not left to Programs.
	if err := fetch.ValidProgram(t.Program); err != nil {
		return "", &fetch.Error{Program: t.Program, Worker: r.worker.opts.Name, Err: err}
	}
	return r.worker.opts.Programs.Ensure(ctx, t.Program, t.Source, func(line string) { r.journal.write(ctx, line) })
}

// explain names program and worker where run.sh could not be started.
func (r *round) explain(err error) error {
	var start *process.StartError
	if !errors.As(err, &start) {
		return err
	}
	what := "could not start program './%s/run.sh' at worker '%s': %w"
	if start.Reason == process.ReasonMissing {
		what = "program './%s/run.sh' does not exist at worker '%s': %w"
	}
	return fmt.Errorf(what, r.task.Program, r.worker.opts.Name, err)
}

func inputText(t *store.Claimed) string {
	if t.Argv != nil {
		return strings.Join(t.Argv, " ")
	}
	return t.Input
}
