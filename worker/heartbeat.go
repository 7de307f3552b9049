package worker

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/task"
)

// beat renews the lease three times in its length, and at once when something
// was ordered or has changed, until ctx ends.
func (w *Worker) beat(ctx context.Context) {
	w.background.Go(func() {
		w.opts.Backend.Listen(ctx, w.opts.Name, w.signalChange, w.rulesChanged, func(request string) { w.errand(ctx, request) })
	})
	for ctx.Err() == nil {
		next := w.renew(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(next):
		case <-w.changed:
		}
	}
}

// renew makes one heartbeat and returns the pause before the next.
func (w *Worker) renew(ctx context.Context) time.Duration {
	session := w.lease.last()
	interval := w.lease.interval()
	sent := shim.Now()
	limit, cancel := context.WithTimeoutCause(ctx, interval, task.ErrUnreachable)
	defer cancel()
	r, err := w.opts.Backend.Renew(limit, session, w.heartbeat())
	switch {
	case err == nil:
		w.renewing.answered()
		w.extend(w.lease.renew(timing.ToStd(r.Lease), sent))
		w.command(r.Order)
		w.cancel(r.Stops)
		w.endOverdue(r.Overdue, r.Redis)
		w.follow(ctx, r.Followed)
		return w.lease.interval() // of the lease that was told just now
	case errors.Is(err, ErrLeaseLost):
		w.lose(ctx, err)
		return 0
	case ctx.Err() != nil:
		return 0
	}
	if _, held := w.lease.now(); held && errors.Is(err, ErrAway) {
		// Nobody can have taken a round over by then, and once Redis is back no
		// server judges before one full lease.
		w.extend(w.lease.renew(0, sent))
	}
	return min(interval, w.renewing.failed(err))
}

// extend tells the slots how long the lease holds.
func (w *Worker) extend(until shim.Instant) {
	for _, s := range w.slots {
		s.extend(until)
	}
}

// leaseOver is called when the lease has ended by our own clock.
func (w *Worker) leaseOver() {
	w.log.Error("could not renew the lease in time: stopping all programs before their tasks are given away")
	w.killRounds(errLeaseOver)
}

// lose is for a lease that Redis says is gone. Whatever still runs belongs to
// others by now. Results that are there already are reported first, because the
// new registration gives up what the old one held.
func (w *Worker) lose(ctx context.Context, err error) {
	w.log.Error("lost the lease: stopping all programs and registering again", "error", err)
	w.lease.drop()
	w.killRounds(errLeaseOver)
	w.settle(ctx)
	for ctx.Err() == nil {
		err := w.register(ctx)
		switch {
		case err == nil:
			return
		case errors.Is(err, ErrNameTaken):
			w.fail(err)
			return
		}
		timing.Pause(ctx, w.renewing.failed(err))
	}
}

// settlePatience bounds the wait for rounds that were killed to be reported.
const settlePatience = 15 * time.Second

// settle waits until no slot works any more, and all that was is reported.
func (w *Worker) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	for ctx.Err() == nil {
		change := w.pool.change()
		if w.pool.quiet() {
			return
		}
		select {
		case <-ctx.Done():
		case <-change:
		}
	}
}

// heartbeat is what the worker does just now.
func (w *Worker) heartbeat() Heartbeat {
	busy, stuck := w.busy(), w.pool.count(stuck)
	w.shown.Store(int64(busy))
	h := Heartbeat{State: task.WorkerReady, Busy: busy, Stuck: stuck, Queues: w.queueUse(), Outlast: w.opts.OnRedisLoss == config.FinishOnLoss}
	h.Reason = cmp.Or(w.whyPaused().text, w.rules.last().quarantined)
	if w.draining() {
		h.State = task.WorkerDraining
		if w.pool.quiet() {
			h.State = task.WorkerDrained
		}
	}
	return h
}

// anyClass stands for a queue without a class.
const anyClass = "*"

// queueUse is the use of each queue that this worker serves, or of which it
// runs something (Disbatch: queue heartbeat object).
func (w *Worker) queueUse() []task.QueueUse {
	v, running := w.rules.last(), w.pool.byQueue()
	uses := make([]task.QueueUse, 0, len(v.queues)+len(running))
	for i := range v.queues {
		name := v.queues[i].Name
		uses = append(uses, useOf(&v.queues[i], w.opts.Slots, running[name]))
		delete(running, name)
	}
	for _, name := range slices.Sorted(maps.Keys(running)) { // paused meanwhile, or without a record
		q := task.ParseQueue(name, nil)
		if i := slices.IndexFunc(v.turns, func(t task.Candidate) bool { return t.Queue.Name == name }); i >= 0 {
			q = v.turns[i].Queue
		}
		uses = append(uses, useOf(&q, w.opts.Slots, running[name]))
	}
	return uses
}

// useOf keeps idle + processing = threads, also where a limit was lowered below
// what runs.
func useOf(q *task.QueueSpec, slots, processing int) task.QueueUse {
	threads := max(min(slots, cmp.Or(q.MaxThreads, task.Unlimited).N()), processing)
	return task.QueueUse{
		Class: classOf(q), Queue: q.Name, Threads: threads, Processing: processing, Idle: threads - processing,
	}
}

// classOf is the class as it is shown.
func classOf(q *task.QueueSpec) string {
	fields := q.Fields()
	if i := slices.Index(fields, "class"); i >= 0 && fields[i+1] != "" {
		return fields[i+1]
	}
	return anyClass
}

// lease is the worker's right to its rounds, on a clock that goes on while the
// host sleeps. It is over for the worker a margin before it is over for the
// server, so that nothing of a round is left when the server gives it away.
type lease struct {
	mu      sync.Mutex
	session Session
	until   shim.Instant
	held    bool
	timer   *time.Timer
	// over is called, in a goroutine of its own, when the lease ends.
	over func()
}

// margin is how much earlier the worker counts its lease as over: time enough
// to kill.
func margin(length time.Duration) time.Duration { return min(time.Second, length/10) }

// begin starts the lease of a new session, asked for at the moment sent.
func (l *lease) begin(session Session, sent shim.Instant) shim.Instant {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = session
	return l.extend(sent)
}

// renew prolongs the lease of the same session.
func (l *lease) renew(length time.Duration, sent shim.Instant) shim.Instant {
	l.mu.Lock()
	defer l.mu.Unlock()
	if length > 0 {
		l.session.Lease = timing.FromStd(length)
	}
	return l.extend(sent)
}

func (l *lease) extend(sent shim.Instant) shim.Instant {
	length := l.length()
	l.held = true
	l.until = sent + shim.Instant(length-margin(length))
	l.arm()
	return l.until
}

// arm sets the timer for the end of the lease. The timer's own clock stands
// still while the host sleeps, so it is looked at again when it fires.
func (l *lease) arm() {
	left := time.Duration(l.until - shim.Now())
	if l.timer == nil {
		l.timer = time.AfterFunc(left, l.fire)
		return
	}
	l.timer.Reset(left)
}

func (l *lease) fire() {
	l.mu.Lock()
	ended := l.held && shim.Now() >= l.until
	switch {
	case ended:
		l.held = false
	case l.held:
		l.arm()
	}
	l.mu.Unlock()
	if ended {
		l.over()
	}
}

// drop ends the lease at once: Redis has said that it is gone.
func (l *lease) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
}

// stop forgets the timer.
func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	if l.timer != nil {
		l.timer.Stop()
	}
}

// now returns the session, and whether it holds.
func (l *lease) now() (Session, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.held && shim.Now() < l.until
}

// last is the session, whether or not it still holds: without a look at the clock.
func (l *lease) last() Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// end is until when the session holds, if it does.
func (l *lease) end() shim.Instant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// interval is the time between two heartbeats: a third of the lease.
func (l *lease) interval() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length() / 3
}

func (l *lease) length() time.Duration { return timing.ToStd(l.session.Lease) }
