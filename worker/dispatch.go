package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// dispatch claims tasks for the idle slots until ctx ends.
func (w *Worker) dispatch(ctx context.Context) {
	// A claim survives the end of ctx for a while: Redis may have carried it out, and then the worker has to hand back
	// what it got.
	asking, cancel := outlive(ctx, w.opts.stopTimeout)
	defer cancel()
	for {
		free := w.pool.await(ctx, 0)
		if ctx.Err() != nil {
			w.passOn(ctx)
			return
		}
		if why := w.whyPaused(); why.kind != "" {
			w.passOn(ctx)
			w.sayPaused(why)
			w.lull = nil
			_ = w.clearDoubt(asking) // tried again as long as there is doubt
			w.awaitChange(ctx)
			continue
		}
		w.sayResumed()
		if w.lull == nil && w.woken == "" && w.reporter.await(ctx) {
			continue
		}
		w.dispatchOnce(ctx, asking, free)
	}
}

// lull is the answer to a claim that left nothing due, after which the next one waits for work.
type lull struct {
	reply ClaimReply
	clock redisClock
	free  int // slots that it has left
}

// dispatchOnce claims and works. Where the last claim left nothing due, it waits for work first.
func (w *Worker) dispatchOnce(ctx, asking context.Context, free int) {
	session := w.lease.last()
	if l := w.lull; l != nil {
		w.lull = nil
		w.idle(ctx, l, session.Incarnation, free)
		return
	}
	reply, clock, err := w.claim(asking, session.Incarnation, free)
	w.use(ctx, &reply, clock, session.Incarnation, free, err)
}

// use does what the answer to a claim for the free slots asks for.
func (w *Worker) use(ctx context.Context, reply *ClaimReply, clock redisClock, incarnation int64, free int, err error) {
	if err == nil {
		w.useWakeUp(ctx, reply)
	}
	switch {
	case errors.Is(err, ErrLeaseLost):
		w.signalChange() // the heartbeat finds it too, and acts on it
		w.awaitChange(ctx)
	case err != nil:
		timing.Pause(ctx, w.claiming.failed(err))
	case len(reply.Tasks) > 0:
		w.idling, w.waits = false, 0
		w.start(reply.Tasks, clock, incarnation) //nolint:contextcheck // rounds end by the worker's own stages
	case claimAgain(reply):
		timing.Pause(ctx, w.claims.again.Next()) // next to nothing, unless it goes on so
	case !reply.More:
		w.lull = &lull{*reply, clock, free}
	}
}

// start gives each task a slot. A claim that was sent along with reports and got no answer was for more slots than are
// free now.
func (w *Worker) start(tasks []Claimed, clock redisClock, incarnation int64) {
	for i := range tasks {
		w.place(newAssignment(&tasks[i], clock, incarnation))
	}
}

// claim claims, or asks again for what the last claim got.
func (w *Worker) claim(ctx context.Context, incarnation int64, free int) (ClaimReply, redisClock, error) {
	reply, clock, err := w.claims.claim(ctx, incarnation, free, w.woken)
	if err != nil {
		return reply, clock, err
	}
	w.sayClaimed(&reply)
	return reply, clock, nil
}

// sayClaimed takes note of a claim that was answered.
func (w *Worker) sayClaimed(reply *ClaimReply) {
	w.claiming.answered()
	for _, id := range reply.Damaged {
		w.log.Error(fmt.Sprintf("could not claim task %d", id), "task", id, "error", task.ErrDamaged)
	}
}

// useWakeUp passes the wake-up that led to a claim on if the claim had no use for
// it. What claims nothing because of outdated rules, or finds more to look at, is
// followed by another claim, which decides.
func (w *Worker) useWakeUp(ctx context.Context, reply *ClaimReply) {
	if w.woken == "" || len(reply.Tasks) == 0 && (claimAgain(reply) || reply.More) {
		return
	}
	if reply.Unused {
		w.passOn(ctx)
		return
	}
	w.woken = ""
}

// rulesChanged is called when queues or nodes were changed. It makes an idle worker
// claim by the new rules at once.
func (w *Worker) rulesChanged() {
	w.rules.outdate()
	w.giveBack()
	w.endWait()
}

// endWait makes the dispatcher look again if it waits for work. The claim behind the wait gets nothing any more.
func (w *Worker) endWait() {
	if stop := w.resting.Load(); stop != nil {
		(*stop)()
	}
}

// passOn gives a wake-up that this worker cannot use, if it has one, to another.
func (w *Worker) passOn(ctx context.Context) {
	if w.woken == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	if err := w.opts.Backend.PassOn(ctx, w.woken); err != nil {
		w.log.Debug("could not pass a wake-up on", "error", err) // others poll
	}
	w.woken = ""
}

// resolveDoubt asks again for the tasks of a claim whose answer never came, so
// that none stays claimed without a worker, and hands them back.
func (w *Worker) resolveDoubt(ctx context.Context) {
	for w.claims.inDoubt() {
		err := w.clearDoubt(ctx)
		switch {
		case err == nil:
			return
		case ctx.Err() != nil:
			w.log.Error("stopped without knowing whether the last claim got a task", "error", err)
			return
		}
		timing.Pause(ctx, w.claiming.failed(err))
	}
}

// clearDoubt asks once. The tasks of a session that is over are taken back
// together with its lease.
func (w *Worker) clearDoubt(ctx context.Context) error {
	session, held := w.lease.now()
	if !w.claims.doubts(session.Incarnation) {
		return nil
	}
	if !held {
		return errLeaseOver
	}
	reply, clock, err := w.claim(ctx, session.Incarnation, 1)
	switch {
	case errors.Is(err, ErrLeaseLost):
		return nil
	case err != nil:
		return err
	}
	for i := range reply.Tasks {
		w.handBack(ctx, newAssignment(&reply.Tasks[i], clock, session.Incarnation), ErrDraining)
	}
	return nil
}

// handBack gives a task back that was never begun.
func (w *Worker) handBack(ctx context.Context, a *assignment, why error) {
	r := w.newRound(ctx, a.claimed, a.clock, nil)
	_, _ = r.report(ctx, &ending{event: statemachine.HandBack, why: why, result: notRun()})
}

// turnedAwayWait is how long a worker trusts in being woken while limits keep due
// tasks from it: the wake-up for a place that is free may go to one that it does
// not help, and no server repeats it. A worker that gathers slots says so as often.
const turnedAwayWait = 3 * time.Second

// idle waits until the worker is woken, the next task starts, or its patience ends, and claims behind that.
func (w *Worker) idle(ctx context.Context, l *lull, incarnation int64, free int) {
	level := slog.LevelInfo
	if w.idling {
		level = slog.LevelDebug
	}
	w.idling = true
	w.log.Log(ctx, level, "no open task to claim")
	w.sayFull(ctx, &l.reply)
	got, clock, ok := w.wait(ctx, l, incarnation, free)
	if !ok {
		return
	}
	w.waits++
	if got.Err == nil || got.Claimed == nil {
		w.useWaited(ctx, &got, clock, incarnation, free)
	}
	if got.Err == nil {
		w.waiting.answered()
	} else {
		timing.Pause(ctx, w.waiting.failed(got.Err))
	}
}

// wait waits and claims until endWait is called. It is not ok where it may not have begun to wait: nothing ends a wait for what came
// before it.
func (w *Worker) wait(ctx context.Context, l *lull, incarnation int64, free int) (got Waited, clock redisClock, ok bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w.resting.Store(&stop)
	defer w.resting.Store(nil)
	if l.reply.Wider { // for more slots than were free
		go func() {
			if w.pool.await(ctx, l.free) > 0 {
				w.endWait()
			}
		}()
	}
	if w.rules.outdated.Load() || w.whyPaused().kind != "" {
		return got, clock, false
	}
	got, clock, ok = w.claims.wait(ctx, w.waitFor(l), w.idleTime(&l.reply), incarnation, free)
	w.woken = got.Woken
	return got, clock, ok && (got.Claimed == nil || ctx.Err() == nil)
}

// useWaited does what the answer to a claim behind a wait asks for. If a reason to claim nothing has come up meanwhile, the tasks
// go back.
func (w *Worker) useWaited(ctx context.Context, got *Waited, clock redisClock, incarnation int64, free int) {
	if got.Claimed == nil {
		w.sayClaimed(&got.Reply)
	}
	if why, tasks := w.whyPaused(), got.Reply.Tasks; len(tasks) > 0 && why.kind != "" {
		for i := range tasks {
			w.working.Go(func() { w.handBack(w.reports, newAssignment(&tasks[i], clock, incarnation), errors.New(why.text)) })
		}
		w.useWakeUp(ctx, &got.Reply)
		w.waits = 0
		return
	}
	w.use(ctx, &got.Reply, clock, incarnation, free, got.Claimed)
	if len(got.Reply.Tasks) > 0 && !got.Reply.More && w.pool.vacant() > 0 { // another claim would find nothing
		for i := range got.Reply.Tasks {
			free -= slotsOf(&got.Reply.Tasks[i])
		}
		w.lull = &lull{got.Reply, clock, free}
		w.lull.reply.Tasks = nil
	}
}

// patience is the longest wait after a number of waits in a row that brought nothing
// (zk-plan: calc-sleep-time). The longer there was no work, the more it relies on
// being woken.
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
func (w *Worker) idleTime(reply *ClaimReply) time.Duration {
	d := w.opts.patience(w.waits)
	if reply.NodeFull || reply.Wider || len(reply.Full) > 0 || w.rules.last().quarantined != "" {
		d = min(d, turnedAwayWait)
	}
	if next := reply.Next.Sub(reply.Now); reply.Next != statemachine.Never && next < timing.FromStd(d) {
		d = timing.ToStd(next)
	}
	return max(d, time.Millisecond)
}

// waitFor is what may end the wait after a claim that got nothing.
func (w *Worker) waitFor(l *lull) WaitFor {
	f := WaitFor{
		Worker: w.opts.Name, Node: w.opts.Node, Candidates: w.rules.last().turns,
		Full: l.reply.Full, Elsewhere: l.reply.Elsewhere, NodeFull: l.reply.NodeFull, Now: l.clock.now(),
	}
	if l.reply.Wider {
		f.Slots = l.free
	}
	return f
}

// sayFull says which limits keep due tasks from this worker.
func (w *Worker) sayFull(ctx context.Context, reply *ClaimReply) {
	switch {
	case !w.log.Enabled(ctx, slog.LevelDebug):
	case reply.Gathers != "":
		w.log.Debug("the free slots are left to a task that takes more", "queue", reply.Gathers)
	case reply.NodeFull:
		w.log.Debug("the node takes no more tasks", "node", w.opts.Node, "set_aside", w.rules.last().quarantined)
	case len(reply.Full) > 0:
		w.log.Debug("limits or resources keep due tasks of these queues waiting", "queues", reply.Full)
	}
}
