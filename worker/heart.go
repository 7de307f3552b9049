package worker

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store"
)

// beat renews the lease three times in its length, and at once when something
// was ordered or has changed, until ctx ends.
func (w *Worker) beat(ctx context.Context) {
	calls, stop := w.opts.Store.Calls(ctx, w.opts.Name)
	defer stop()
	w.background.Go(func() { w.hear(ctx, calls.Rules) })
	for ctx.Err() == nil {
		next := w.renew(ctx)
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-calls.Renew:
		case <-w.changed:
		}
		timer.Stop()
	}
}

// renew makes one heartbeat and returns the pause before the next.
func (w *Worker) renew(ctx context.Context) time.Duration {
	session, _, _ := w.lease.now()
	interval := w.lease.interval()
	sent := shim.Now()
	limit, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	r, err := w.opts.Store.Renew(limit, session, w.heartbeat())
	switch {
	case err == nil:
		w.renewing.answered()
		w.extend(w.lease.renew(timing.ToStd(r.Lease), sent))
		w.order(r.Order)
		w.cancel(r.Stops)
		w.endOverdue(r.Overdue, r.Redis)
		w.follow(ctx, r.Followed)
		return w.lease.interval() // of the lease that was told just now
	case errors.Is(err, store.ErrLeaseLost):
		w.lose(ctx, err)
		return 0
	case ctx.Err() != nil:
		return 0
	}
	if _, _, held := w.lease.now(); held && w.opts.FinishWithoutRedis && w.opts.Store.Away(limit, err) {
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
	w.log.Error().Msg("could not renew the lease in time: stopping all programs before their tasks are given away")
	w.killRounds(errLeaseOver)
}

// lose is for a lease that Redis says is gone. Whatever still runs belongs to
// others by now. Results that are there already are reported first, because the
// new registration gives up what the old one held.
func (w *Worker) lose(ctx context.Context, err error) {
	w.log.Error().Err(err).Msg("lost the lease: stopping all programs and registering again")
	w.lease.drop()
	w.killRounds(errLeaseOver)
	w.settle(ctx)
	for ctx.Err() == nil {
		err := w.register(ctx)
		switch {
		case err == nil:
			return
		case errors.Is(err, store.ErrNameTaken):
			w.fail(err)
			return
		}
		timing.Pause(ctx, w.renewing.failed(err))
	}
}

// settlePatience bounds the wait for rounds that were killed to be reported.
const settlePatience = 15 * time.Second

// settle waits until no slot works any more.
func (w *Worker) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	for ctx.Err() == nil {
		change := w.pool.change()
		if w.busy() == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-change:
		}
	}
}

// heartbeat is what the worker does just now.
func (w *Worker) heartbeat() store.Heartbeat {
	busy, stuck := w.busy(), w.pool.count(stuck)
	w.shown.Store(int64(busy))
	h := store.Heartbeat{State: store.WorkerReady, Busy: busy, Stuck: stuck, Queues: w.queueUse()}
	h.Reason = cmp.Or(w.whyPaused().text, w.rules.last().setAside)
	if w.draining() {
		h.State = store.WorkerDraining
		if busy == 0 {
			h.State = store.WorkerDrained
		}
	}
	return h
}
