package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/base/gather"
	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/internal/sandbox/spool"
	"github.com/tdf-go/tdf/task"
)

// Worker claims tasks, runs them and reports, until it is told to stop.
type Worker struct {
	opts     options
	log      *slog.Logger
	turns    *slog.Logger // keeps lines until flush
	flush    func()
	allow    []string
	environ  []string
	token    string // tells this Worker from others of this process
	rules    *rulebook
	claims   *claimer
	reporter *reporter
	// A lane each for what may fail alone.
	renewing, claiming, waiting, reading, reporting lane
	lease                                           *lease
	site                                            Site                       // once Run has begun
	clock                                           atomic.Pointer[redisClock] // of the last registration
	slots                                           []*slot
	pool                                            *pool
	pace                                            pace
	disk                                            *disk.Guard
	spool                                           *spool.Spool
	private                                         privateHome
	sharing                                         sync.Mutex // held while a shared directory is made
	mounts                                          remove.Mounts
	shortage                                        shortage
	errands                                         errands
	keepers                                         keepers
	firsts                                          firsts
	started                                         atomic.Bool
	ready                                           chan struct{} // closed once the worker is registered

	// What the dispatcher did and said last.
	idling bool
	waits  int // how many in a row brought nothing
	paused string
	woken  WakeUp // what ended its last wait; it is not decided yet whether it is used
	lull   *lull  // the next claim waits for work, nil if it is due at once

	resting    atomic.Pointer[context.CancelFunc] // ends the dispatcher's wait for work; nil if it does not wait
	stops      atomic.Pointer[[]int64]            // tasks to stop, as the last heartbeat was told
	ordered    atomic.Value                       // task.WorkerCommand
	serving    atomic.Pointer[stage]              // over once the worker drains; another one when it is undrained
	shown      atomic.Int64                       // how many slots the last heartbeat said are busy
	changed    chan struct{}
	stopNow    chan struct{}
	once       sync.Once // closes stopNow
	stoppedNow atomic.Bool
	tidied     sync.Once

	// rounds ends with the first reason to stop, executing when programs must not
	// go on, reports when no more time is left to report, life when all is reported.
	rounds, executing, reports, life context.Context //nolint:containedctx // the stages of one life, see Run
	stopRounds, stopExecuting        context.CancelCauseFunc
	stopReports, endLife             context.CancelFunc
	working, background              sync.WaitGroup

	closers []func() error // of what New has opened
}

// assemble makes a worker of complete options.
func assemble(opts options) (*Worker, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	guard, err := disk.NewGuard(uint64(opts.DiskReserve), opts.ProgramDir, opts.TempDir, opts.SpoolDir)
	if err != nil {
		return nil, &OptionError{"DiskReserve", opts.DiskReserve, err.Error()}
	}
	opts.Handlers = opts.wrapped()
	if f, ok := opts.Programs.(*fetch.Fetcher); ok {
		opts.errands = f.Do
	}
	log := cmp.Or(opts.Logger, slog.Default()).With("worker", opts.Name)
	turns, flush := gather.Log(log)
	w := &Worker{
		opts: opts, log: log, turns: turns, flush: flush, token: newToken(), disk: guard,
		allow: append(process.DefaultAllow(), opts.Environment...),
		// What configures TDF, passwords above all, is not for programs.
		environ: slices.DeleteFunc(slices.Clone(opts.environ), func(entry string) bool {
			return strings.HasPrefix(entry, "TDF_")
		}),
		ready: make(chan struct{}), changed: make(chan struct{}, 1), stopNow: make(chan struct{}),
	}
	w.rules = newRulebook(opts.Backend, opts.offer(), func() int { return w.pool.count(stuck) }, w.signalChange)
	w.claims = newClaimer(opts.Backend, w.rules)
	w.reporter = &reporter{worker: w}
	redis := link.New(log)
	w.renewing, w.claiming = newLane(redis, log), newLane(redis, log)
	w.waiting, w.reading, w.reporting = newLane(redis, log), newLane(redis, log), newLane(redis, log)
	w.lease = &lease{over: w.leaseOver}
	for i := range opts.Slots {
		w.slots = append(w.slots, &slot{worker: w, index: i})
	}
	w.pool = newPool(w.slots, opts.aheadTime)
	w.ordered.Store(task.NoCommand)
	w.stops.Store(&[]int64{})
	return w, nil
}

// Run works until ctx is done: then the worker drains. It claims nothing more,
// lets its programs go on for DrainTimeout, stops those that are left, hands
// their tasks back and leaves the registry. Run then returns nil.
//
// It returns an error if Redis cannot be reached or is not fit at the start
// (see [Backend]), one matching [ErrNameTaken] if another worker of
// this name is alive, and [ErrStarted] if it has been called before.
func (w *Worker) Run(ctx context.Context) (err error) {
	if !w.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	defer func() { err = errors.Join(err, closeAll(w.closers)) }()
	defer w.closeSpool()
	defer w.leavePrivateDir()
	makeThreads(2*len(w.slots) + spareThreads)
	defer w.mounts.Close()
	w.rounds, w.stopRounds = context.WithCancelCause(ctx)
	defer w.stopRounds(nil)
	w.serve()
	w.executing, w.stopExecuting = context.WithCancelCause(context.WithoutCancel(ctx))
	defer w.stopExecuting(nil)
	w.reports, w.stopReports = context.WithCancel(context.WithoutCancel(ctx))
	defer w.stopReports()
	w.life, w.endLife = context.WithCancel(context.WithoutCancel(ctx))
	defer w.endLife()
	defer w.lease.stop()
	if err := w.begin(w.rounds); err != nil { //nolint:contextcheck // made from ctx above
		if ctx.Err() != nil {
			return nil // stopped while it started, which is no error
		}
		return err
	}
	return w.live()
}

// spareThreads are for what the worker does beside its slots. A slot needs two: one
// that waits for its shim, and one for a call to the system that takes long.
const spareThreads = 8

// makeThreads makes n threads, which the runtime keeps for later: if it cannot make
// one that it needs, it ends the process.
func makeThreads(n int) {
	var together sync.WaitGroup
	together.Add(n)
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			together.Done()
			together.Wait()
		}()
	}
	together.Wait()
}

// StopNow makes a worker that drains, or is about to, stop its programs at once
// and hand their tasks back.
func (w *Worker) StopNow() { w.once.Do(func() { close(w.stopNow) }) }

// live is the worker's life from its registration to its end.
func (w *Worker) live() error {
	w.background.Go(func() { w.beat(w.life) })
	w.tidy() // which may take longer than a lease
	if err := w.deliverSpool(w.rounds); err != nil && w.rounds.Err() == nil {
		w.fail(err)
	}
	close(w.ready)
	w.background.Go(func() { w.watch(w.life) })
	w.background.Go(func() {
		<-w.rounds.Done()
		w.signalChange()
	})
	// Not in line with drain: a Redis that does not answer holds it up.
	dispatching := make(chan struct{})
	go func() {
		defer close(dispatching)
		w.dispatch(w.rounds)
	}()
	<-w.rounds.Done()
	w.drain(dispatching)
	w.working.Wait()
	w.resolveDoubt(w.reports)
	w.endLife()
	w.background.Wait()
	for _, s := range w.slots {
		if err := s.discard(); err != nil {
			w.log.Error("could not end the shim of a slot", "error", err, "slot", s.index)
		}
		if err := s.held.drop(); err != nil {
			w.log.Warn("could not remove the private directory of a slot", "error", err, "slot", s.index)
		}
		s.held.letGo()
		s.held.closeStdin()
	}
	w.removePrivateDir()
	w.leave()
	if fatal, ok := errors.AsType[*fatalError](context.Cause(w.rounds)); ok {
		return fatal.err
	}
	return nil
}

// leave ends the session. If that fails the lease runs out, which costs nothing
// because the worker holds no task any more.
func (w *Worker) leave() {
	session := w.lease.last()
	for {
		err := w.opts.Backend.Leave(w.reports, session)
		switch {
		case err == nil:
			return
		case w.reports.Err() != nil, !errors.Is(err, task.ErrUnreachable):
			w.log.Warn("could not leave the registry; the server will find the worker gone", "error", err)
			return
		}
		timing.Pause(w.reports, w.renewing.failed(err))
	}
}

// fail ends the worker with an error.
func (w *Worker) fail(err error) { w.stopRounds(&fatalError{err}) }

// fatalError is why a worker cannot go on.
type fatalError struct{ err error }

// Error is that of the cause.
func (e *fatalError) Error() string { return e.err.Error() }

// lane is one kind of command on the way to Redis. All lanes lose Redis together
// and say so once; what Redis refuses, each has for itself, so that the success
// of one neither hides nor hastens the repeated failure of another.
type lane struct{ all, own *link.Link }

func newLane(all *link.Link, log *slog.Logger) lane { return lane{all, link.New(log)} }

func (l lane) answered() {
	l.all.Answered()
	l.own.Answered()
}

// ask repeats a question until it is answered, refused, or ctx leaves no more time.
func (l lane) ask(ctx context.Context, question func() error) error {
	for {
		err := question()
		if err == nil {
			l.answered()
			return nil
		}
		if ctx.Err() != nil || !errors.Is(err, task.ErrUnreachable) {
			return err
		}
		timing.Pause(ctx, l.failed(err))
	}
}

// failed returns the pause before the next attempt.
func (l lane) failed(err error) time.Duration {
	if errors.Is(err, task.ErrUnreachable) {
		return l.all.Failed(err)
	}
	return l.own.Failed(err)
}
