package worker

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// turnedAwayWait is how long a worker trusts in being woken while limits keep due
// tasks from it: the wake-up for a place that is free may go to one that it does
// not help, and no server repeats it.
const turnedAwayWait = 3 * time.Second

// idle waits until the worker is woken, the next task starts, or its patience ends.
func (w *Worker) idle(ctx context.Context, reply *store.ClaimReply) {
	level := zerolog.InfoLevel
	if w.idling {
		level = zerolog.DebugLevel
	}
	w.idling = true
	w.log.WithLevel(level).Msg("no open task to claim")
	w.sayFull(reply)
	w.resting.Store(true)
	defer w.resting.Store(false)
	if w.rules.outdated.Load() { // by a change that came before the wait: nobody ends it
		return
	}
	longest := w.idleTime(reply)
	w.waits++
	woken, err := w.opts.Store.WaitWork(ctx, w.waitFor(reply), longest)
	switch {
	case err == nil:
		w.waiting.answered()
	case ctx.Err() == nil:
		timing.Pause(ctx, w.waiting.failed(err))
	}
	w.woken = woken
}

// patience is the longest that a wait may last if so many before it, one after the
// other, brought nothing (zk-plan: calc-sleep-time). It trusts the more in being woken the longer
// nothing was to be done.
func (o *Options) patience(waits int) time.Duration {
	growing := statemachine.Backoff{
		Delay: timing.FromStd(o.SleepInitial), Factor: o.SleepIncrease, Max: timing.FromStd(o.SleepMax),
	}
	d := timing.ToStd(growing.Pause(waits+1, 0)).Truncate(time.Millisecond)
	if o.SleepAfterNoProcessClaimed > 0 {
		d = min(d, o.SleepAfterNoProcessClaimed)
	}
	return d
}

// idleTime is how long to wait after a claim that got nothing.
func (w *Worker) idleTime(reply *store.ClaimReply) time.Duration {
	d := w.opts.patience(w.waits)
	if reply.NodeFull || len(reply.Full) > 0 || w.rules.last().setAside != "" {
		d = min(d, turnedAwayWait)
	}
	if next := reply.Next.Sub(reply.Now); reply.Next != statemachine.Never && next < timing.FromStd(d) {
		d = timing.ToStd(next)
	}
	return max(d, time.Millisecond)
}

// waitFor is what may end the wait after a claim that got nothing.
func (w *Worker) waitFor(reply *store.ClaimReply) store.WaitFor {
	return store.WaitFor{
		Worker: w.opts.Name, Node: w.opts.Node, Turns: w.rules.last().turns,
		Full: reply.Full, Elsewhere: reply.Elsewhere, NodeFull: reply.NodeFull,
	}
}

// sayFull says which limits keep due tasks from this worker.
func (w *Worker) sayFull(reply *store.ClaimReply) {
	switch {
	case reply.NodeFull:
		w.log.Debug().Str("node", w.opts.Node).Str("set_aside", w.rules.last().setAside).Msg("the node takes no more tasks")
	case len(reply.Full) > 0:
		w.log.Debug().Strs("queues", reply.Full).Msg("limits or resources keep due tasks of these queues waiting")
	}
}
