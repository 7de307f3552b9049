package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// drain waits for the running rounds, up to its limits, then stops and hands back
// the rest. It returns when nothing runs and dispatching, which may still bring
// the tasks of a last claim, is closed.
func (w *Worker) drain(dispatching <-chan struct{}) {
	w.log.Info("draining", "running", w.pool.count(executing), "drain_timeout", w.opts.DrainTimeout)
	w.giveBack()
	w.signalChange()
	limit := time.After(w.opts.DrainTimeout)
	stopNow, over := w.stopNow, false
	for {
		change := w.pool.change()
		if dispatching == nil && w.pool.close() {
			break
		}
		select {
		case <-change:
			continue
		case <-dispatching:
			dispatching = nil
		case <-limit:
			over = true
			w.log.Warn("drain_timeout is over: stopping what still runs and handing it back")
		case <-stopNow:
			stopNow, over = nil, true
			w.stoppedNow.Store(true)
			w.log.Warn("killing what still runs and handing it back")
		}
		if over {
			w.stopExecuting(ErrDraining) // also rounds that are only about to begin
			w.stopAll(ErrDraining, stopNow == nil)
		}
	}
	w.giveBack() // what came while slots were at work
	time.AfterFunc(w.opts.stopTimeout, w.stopReports)
}

// stopAll stops all rounds; hard is with KILL and without grace.
func (w *Worker) stopAll(cause error, hard bool) {
	for _, s := range w.slots {
		s.stop(cause, hard)
	}
}

// killRounds is for rounds that may belong to others soon.
func (w *Worker) killRounds(cause error) {
	w.stopAll(cause, true)
	w.giveBack()
	w.signalChange()
	w.endWait()
}

// command takes note of what an operator wants.
func (w *Worker) command(o task.WorkerCommand) {
	before, _ := w.ordered.Swap(o).(task.WorkerCommand)
	if o == before {
		return
	}
	w.signalChange()
	if o == task.NoCommand {
		w.serve()
	} else {
		w.serving.Load().end()
		w.giveBack()
		w.endWait()
	}
	switch o {
	case task.CommandStop:
		w.log.Info("an operator has ordered this worker to stop")
		w.stopRounds(errOrdered)
	case task.CommandDrain:
		w.log.Info("an operator has ordered this worker to drain: it claims nothing until it is undrained")
	case task.NoCommand:
		w.log.Info("this worker is undrained")
	}
}

// stage is a part of a worker's life.
type stage struct {
	context.Context //nolint:containedctx // it is one

	end context.CancelFunc
}

// serve begins the stage in which the worker does not drain.
func (w *Worker) serve() {
	ctx, end := context.WithCancel(w.rounds)
	w.serving.Store(&stage{ctx, end})
}

// draining reports whether the worker claims nothing because it was told so.
func (w *Worker) draining() bool {
	return w.rounds.Err() != nil || w.ordered.Load() == task.CommandDrain
}

// pauseReason is why nothing is claimed although slots are idle; the zero value if
// nothing is in the way. The text may change while the kind stays.
type pauseReason struct{ kind, text string }

func (w *Worker) whyPaused() pauseReason {
	_, held := w.lease.now()
	because := func(text string) pauseReason { return pauseReason{text, text} }
	switch {
	case w.rounds.Err() != nil:
		return because("stopping")
	case w.ordered.Load() == task.CommandDrain:
		return because("drained by an operator")
	case !held:
		return because("without a lease: cut off from redis")
	case w.pool.count(stuck) == len(w.slots):
		return because("all slots are stuck")
	}
	if why := w.shortage.now(); why != "" {
		return pauseReason{"host", "this host cannot run programs now: " + why}
	}
	if err := w.disk.Check(); err != nil {
		return pauseReason{"disk", err.Error()}
	}
	return pauseReason{}
}

func (w *Worker) sayPaused(why pauseReason) {
	if why.kind != w.paused && w.rounds.Err() == nil {
		w.log.Warn("claiming nothing", "why", why.text)
		w.signalChange()
	}
	w.paused = why.kind
}

func (w *Worker) sayResumed() {
	if w.paused != "" {
		w.log.Info("claiming again")
		w.paused = ""
		w.signalChange()
	}
}

// signalChange makes the next heartbeat come at once.
func (w *Worker) signalChange() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// pauseCheck is how often a worker that claims nothing looks whether it may again.
const pauseCheck = 500 * time.Millisecond

func (w *Worker) awaitChange(ctx context.Context) {
	change := w.pool.change()
	select {
	case <-ctx.Done():
	case <-time.After(pauseCheck):
	case <-change:
	}
}

func (w *Worker) busy() int { return w.pool.count(executing, lent, reporting) }

// cancel stops the rounds of tasks that somebody has cancelled. The ids are
// kept for rounds whose claim was not answered yet. Told again, it changes
// nothing: the grace of a program goes on.
func (w *Worker) cancel(tasks []int64) {
	w.stops.Store(&tasks)
	for _, s := range w.slots {
		if r := s.current(); r != nil && w.cancelled(r) {
			s.stopRound(r, ErrCancelled)
		}
	}
}

// cancelled reports whether the task of a round must stop. A cancelled
// task is never opened again, so its id is enough.
func (w *Worker) cancelled(r *round) bool { return slices.Contains(*w.stops.Load(), r.Task.ID) }

// endOverdue stops the rounds that servers find overdue and leave to their worker, as
// far as that is true at the time now of Redis: how long a round has run it knows better
// than Redis, whose clock may have jumped.
func (w *Worker) endOverdue(tasks []int64, now statemachine.Time) {
	for _, s := range w.slots {
		r := s.current()
		switch {
		case r == nil || !slices.Contains(tasks, r.Task.ID):
		case r.clock.now() > r.Task.RoundEnd(0):
			s.stopRound(r, ErrTimeout)
		case now > r.Task.EndBefore:
			s.stopRound(r, errEndBefore)
		default:
			r.log.Debug(fmt.Sprintf("the time of task %d is not over by the clock of this host", r.Task.ID))
		}
	}
}

// stopRound ends a round with TERM, grace and KILL if it is still under way.
func (s *slot) stopRound(r *round, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.round != r {
		return
	}
	if !r.stopping.Swap(true) {
		r.log.Info(fmt.Sprintf("stopping task %d", r.Task.ID), "error", cause)
		r.worker.flush()
	}
	s.cancel(cause)
}
