package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/internal/link"
	"github.com/tdf-go/tdf/internal/process"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// batch is how many tasks one claim takes: as many as the worker runs at a time.
const batch = 1

// longestWait is how long an idle worker trusts in being woken.
const longestWait = time.Second

// Worker claims tasks, runs them and reports, until it is told to stop.
type Worker struct {
	opts    Options
	log     zerolog.Logger
	allow   []string
	environ []string
	claims  *claimer
	link    *link.Link
	idling  bool
	started atomic.Bool
	ready   chan struct{} // closed once the worker is registered
}

// New makes a Worker. It returns an *[OptionError], or a *config.Error for a
// name that cannot be one; Redis is first talked to by Run.
func New(opts Options) (*Worker, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	log := opts.Log.With().Str("worker", opts.Name).Logger()
	return &Worker{
		opts: opts, log: log,
		allow: append(process.DefaultAllow(), opts.Environment...),
		// What configures TDF, passwords above all, is not for programs.
		environ: slices.DeleteFunc(slices.Clone(opts.Environ), func(entry string) bool {
			return strings.HasPrefix(entry, "TDF_")
		}),
		claims: &claimer{store: opts.Store, worker: opts.Name},
		link:   link.New(log),
		ready:  make(chan struct{}),
	}, nil
}

// Run works until ctx is done, and then returns nil. It returns an error if
// Redis cannot be reached or is not fit at the start (see store.Store.Check),
// [ErrStarted] if it has been called before, and process.ErrUnkillable if a
// program survives SIGKILL: then the worker must not take new work beside it.
func (w *Worker) Run(ctx context.Context) error {
	if !w.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	if err := w.begin(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped while it started, which is no error
		}
		return err
	}
	close(w.ready)
	for ctx.Err() == nil {
		if err := w.turn(ctx); err != nil {
			return err
		}
	}
	w.resolveDoubt(ctx)
	return nil
}

// begin checks Redis and makes the worker's name known.
func (w *Worker) begin(ctx context.Context) error {
	info, err := w.opts.Store.Check(ctx)
	if err != nil {
		return err
	}
	for _, warning := range info.Warnings {
		w.log.Warn().Msg(warning)
	}
	if err := w.compareGrace(ctx); err != nil {
		return err
	}
	number, err := w.opts.Store.RegisterWorker(ctx, w.opts.Name)
	if err != nil {
		return err
	}
	w.log.Debug().Int64("worker_id", number).Str("redis", info.Version).Msg("registered")
	return nil
}

// compareGrace warns of a program that may still be stopping while its task
// runs elsewhere already.
func (w *Worker) compareGrace(ctx context.Context) error {
	grace, err := w.opts.Store.Grace(ctx)
	if err != nil {
		return err
	}
	if statemachine.Duration(w.opts.KillGrace.Microseconds()) >= grace {
		w.log.Warn().Msgf("[worker] kill_grace = %s is not shorter than the server's [server] timeout_grace = %s s: "+
			"a task that timed out may run again before its program is gone; make one shorter or the other longer",
			w.opts.KillGrace, grace.Text())
	}
	return nil
}

// turn claims and works, or waits for work.
func (w *Worker) turn(ctx context.Context) error {
	reply, clock, err := w.claim(ctx)
	switch {
	case err != nil:
		pause(ctx, w.link.Failed(err))
		return nil
	case len(reply.Tasks) > 0:
		w.idling = false
		return w.workAll(ctx, reply.Tasks, clock)
	case reply.More:
		return nil
	default:
		w.idle(ctx, &reply)
		return nil
	}
}

// claim survives the end of ctx for a while: Redis may have carried it out, and
// then the worker has to hand back what it got.
func (w *Worker) claim(ctx context.Context) (store.ClaimReply, redisClock, error) {
	ctx, cancel := outlive(ctx, w.opts.StopTimeout)
	defer cancel()
	reply, clock, err := w.claims.claim(ctx)
	if err != nil {
		return reply, clock, err
	}
	w.link.Answered()
	for _, id := range reply.Damaged {
		w.log.Error().Int64("task", id).Err(store.ErrDamaged).Msgf("could not claim task %d", id)
	}
	return reply, clock, nil
}

func (w *Worker) workAll(ctx context.Context, tasks []store.Claimed, clock redisClock) error {
	for i := range tasks {
		if err := w.work(ctx, &tasks[i], clock); err != nil {
			return fmt.Errorf("task %d: %w", tasks[i].ID, err)
		}
	}
	return nil
}

// work does one round. Its error means that the worker must end.
func (w *Worker) work(ctx context.Context, task *store.Claimed, clock redisClock) error {
	r := w.newRound(task, clock)
	end := r.execute(ctx)
	if r.report(ctx, &end) {
		pause(ctx, w.opts.SleepAfterSuccess)
	} else {
		pause(ctx, w.opts.SleepAfterFailure)
	}
	return end.fatal
}

// idle waits until the worker is woken, the next task starts, or the longest
// wait is over.
func (w *Worker) idle(ctx context.Context, reply *store.ClaimReply) {
	level := zerolog.InfoLevel
	if w.idling {
		level = zerolog.DebugLevel
	}
	w.idling = true
	w.log.WithLevel(level).Msg("no open task to claim")
	_, err := w.opts.Store.WaitWork(ctx, w.claims.buckets, w.idleTime(reply))
	if err != nil && ctx.Err() == nil {
		pause(ctx, w.link.Failed(err))
	}
}

func (w *Worker) idleTime(reply *store.ClaimReply) time.Duration {
	d := min(longestWait, w.opts.SleepAfterNoProcessClaimed)
	if next := reply.Next.Sub(reply.Now); reply.Next != statemachine.Never && next < micros(d) {
		d = time.Duration(next) * time.Microsecond
	}
	return max(d, time.Millisecond)
}

// resolveDoubt asks once more for the tasks of a claim whose answer never came,
// so that none stays claimed without a worker; being stopped, it hands them back.
func (w *Worker) resolveDoubt(ctx context.Context) {
	limit, cancel := outlive(ctx, w.opts.StopTimeout)
	defer cancel()
	for w.claims.inDoubt() {
		reply, clock, err := w.claim(ctx)
		if err == nil {
			_ = w.workAll(ctx, reply.Tasks, clock) // nothing is started any more, so nothing can be fatal
			return
		}
		if limit.Err() != nil {
			w.log.Error().Err(err).Msg("stopped without knowing whether the last claim got a task")
			return
		}
		pause(limit, w.link.Failed(err))
	}
}
