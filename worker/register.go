package worker

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// registration is what the worker says of itself.
func (w *Worker) registration() store.Registration {
	host, _ := os.Hostname() // an unnamed host is no reason not to work
	offer := &w.rules.offer
	r := store.Registration{
		Name: w.opts.Name, Node: w.opts.Node, Host: host, PID: os.Getpid(), Identity: identity(w.token),
		Version: w.opts.Version, Slots: w.opts.Slots, Containment: "handlers",
		Env: offer.Env, Labels: offer.Labels, Resources: offer.Resources,
		Classes: offer.Classes, MaxThreads: offer.MaxThreads,
	}
	if w.opts.Container != nil {
		r.Containment = w.opts.Container.Describe()
	}
	return r
}

// register makes the worker known and begins its lease. Before that, what an
// earlier incarnation has left is put in order: its processes are killed, its
// finished results delivered, its tasks taken back.
func (w *Worker) register(ctx context.Context) error {
	reg := w.registration()
	rival := &rival{}
	for {
		sent := shim.Now()
		r, err := w.opts.Store.Register(ctx, reg)
		if taken, ok := errors.AsType[*store.NameTakenError](err); ok {
			if err := w.awaitName(ctx, rival, taken, &reg); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if len(r.Former) == 0 {
			w.registered(r, sent)
			return nil
		}
		if err := w.takeOver(ctx, r); err != nil {
			return err
		}
	}
}

func (w *Worker) registered(r store.Registered, sent shim.Instant) {
	// A session that ended may have ended because Redis was flushed or lost changes. Then the versions of the rules
	// were counted anew, and one that is known may stand for other rules.
	w.rules.outdate()
	w.extend(w.lease.begin(r.Session, sent))
	w.order(r.Order)
	w.warnOfNode()
	w.log.Info().Int64("worker_id", r.ID).Int64("incarnation", r.Incarnation).Str("node", w.opts.Node).
		Int("slots", w.opts.Slots).Str("containment", w.registration().Containment).
		Str("lease", r.Lease.Text()).Msg("registered")
}

// rival is another worker that has our name, as it was seen last.
type rival struct {
	incarnation int64
	heartbeat   statemachine.Time
	since       time.Time // when that heartbeat was seen first
}

// awaitName finds out whether the holder of our name is alive. One that was seen
// to die on this host is replaced at once; one whose heartbeat stands still for
// a whole lease, by our own clock, after that; one that gives a sign of life
// keeps the name. A server may take it away meanwhile.
func (w *Worker) awaitName(ctx context.Context, seen *rival, taken *store.NameTakenError, reg *store.Registration) error {
	holder := &taken.Holder
	if dead(holder.Identity) {
		w.log.Info().Int("pid", holder.PID).Msg("the worker that had this name is dead; taking its place")
		reg.Replaces = holder.Incarnation
		return nil
	}
	switch {
	case seen.since.IsZero():
		w.log.Info().Str("host", holder.Host).Int("pid", holder.PID).
			Msg("another worker has this name; waiting whether it is still alive")
	case holder.Incarnation != seen.incarnation || holder.Heartbeat != seen.heartbeat:
		return taken
	case time.Since(seen.since) > timing.ToStd(taken.Lease):
		reg.Replaces = holder.Incarnation
		return nil
	}
	if seen.since.IsZero() {
		*seen = rival{incarnation: holder.Incarnation, heartbeat: holder.Heartbeat, since: time.Now()}
	}
	timing.Pause(ctx, nameInterval)
	return ctx.Err()
}

// nameInterval is how often a worker looks whether its name is free.
const nameInterval = 200 * time.Millisecond

// takeOver puts in order what an earlier incarnation has left. Its lease is
// fenced, so nobody but this worker looks after it.
func (w *Worker) takeOver(ctx context.Context, r store.Registered) error {
	w.tidy()
	if err := w.deliverSpool(ctx); err != nil {
		return err
	}
	orders := make([]store.Order, 0, len(r.Former))
	for i := range r.Former {
		t := &r.Former[i]
		move, err := statemachine.Decide(&t.Task, statemachine.Occurrence{
			Event: statemachine.Lose, Actor: statemachine.Worker, Void: w.opts.Store.Void(&t.Task),
		}, r.Now)
		if err = errors.Join(t.Err, err); err != nil {
			// A server sets it aside; until then it is in our way.
			w.log.Error().Err(err).Int64("task", t.ID).Msg("could not take back a task of an earlier incarnation")
			continue
		}
		orders = append(orders, store.Order{Move: move, Writer: w.opts.Name, Bucket: t.Bucket})
	}
	if len(orders) == 0 {
		timing.Pause(ctx, damagePause)
		return ctx.Err()
	}
	return w.lossOf(ctx, orders)
}

// damagePause is how long a worker waits for a server to set damaged tasks aside.
const damagePause = 2 * time.Second

// lossOf makes the moves of lost tasks.
func (w *Worker) lossOf(ctx context.Context, orders []store.Order) error {
	outcomes, err := w.opts.Store.Apply(ctx, orders...)
	if err != nil {
		return err
	}
	for i, o := range outcomes {
		if o.Result == statemachine.Moved {
			w.log.Warn().Int64("task", o.ID).Str("to", string(orders[i].To)).
				Msg("took back a task of an earlier incarnation of this worker")
		}
	}
	return nil
}

// warnOfNode is about a name that somebody has chosen. A host name is what it is.
func (w *Worker) warnOfNode() {
	if host, _ := os.Hostname(); w.opts.Node != host && !route.DisbatchNode(w.opts.Node) {
		w.log.Warn().Str("node", w.opts.Node).
			Msg("the node's name is no node id of Disbatch (1 to 8 letters, digits and _, a letter first): its clients may refuse it")
	}
}
