package worker

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/sandbox/spool"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// openSpool opens the spool. The worker can do without: results are then kept in
// memory only.
func (w *Worker) openSpool() {
	var err error
	if w.spool, err = spool.Open(w.opts.SpoolDir, w.site.Mark+"."+w.site.Namespace, w.opts.Name); err != nil {
		w.log.Warn("cannot keep results on disk while redis is away; they will be in memory only", "error", err, "spool_dir", w.opts.SpoolDir)
	}
}

func (w *Worker) closeSpool() {
	if w.spool == nil {
		return
	}
	if err := w.spool.Close(); err != nil {
		w.log.Warn("could not close the spool", "error", err)
	}
}

// begin checks Redis, takes the name, and puts in order what an earlier
// incarnation has left behind.
func (w *Worker) begin(ctx context.Context) error {
	var err error
	if w.site, err = w.opts.Backend.Site(ctx); err != nil {
		return err
	}
	for _, warning := range w.site.Warnings {
		w.log.Warn(warning)
	}
	if err := w.compareGrace(); err != nil {
		return err
	}
	if err := w.register(ctx); err != nil {
		return err
	}
	w.log.Debug("redis is fit", "redis", w.site.Version)
	return nil
}

// compareGrace refuses a grace that does not fit into that of the servers, where one
// has published it. Should a server publish a shorter one later, it waits longer than
// that for the worker to stop an overdue program.
func (w *Worker) compareGrace() error {
	if grace := w.site.Grace; timing.FromStd(w.opts.KillGrace) >= grace {
		return &config.Error{
			Section: "worker", Key: "kill_grace", Value: w.opts.KillGrace.String(), Err: config.ErrInvalid,
			Problem: fmt.Sprintf("is not shorter than timeout_grace = %s s of the servers, so an overdue program would stop later than they expect",
				grace.Text()),
			Remedy: "make it shorter, or [server] timeout_grace longer",
		}
	}
	return nil
}

// tidy kills and removes what an earlier process of this worker has left on the
// host, and opens the spool, once. Whoever calls it owns the name.
func (w *Worker) tidy() {
	w.tidied.Do(func() {
		w.sweep()
		w.openSpool()
	})
}

func (w *Worker) sweep() {
	if w.opts.container == nil {
		return // handlers leave nothing
	}
	killed, err := w.opts.container.Sweep()
	if err != nil {
		w.log.Warn("could not kill everything an earlier incarnation has left", "error", err)
	}
	if killed > 0 {
		w.log.Warn("killed what an earlier incarnation of this worker has left", "processes", killed)
	}
	w.sweepPrivate()
}

// registration is what the worker says of itself.
func (w *Worker) registration() task.Registration {
	host, _ := os.Hostname() // an unnamed host is no reason not to work
	offer := &w.rules.offer
	r := task.Registration{
		Name: w.opts.Name, Node: w.opts.Node, Host: host, PID: os.Getpid(), Identity: identity(w.token),
		Version: w.opts.Version, Slots: w.opts.Slots, Containment: "handlers",
		Env: offer.Env, Labels: offer.Labels, Resources: offer.Resources,
		Classes: offer.Classes, MaxThreads: offer.MaxThreads, HandlersOnly: offer.HandlersOnly,
	}
	if w.opts.container != nil {
		r.Containment = w.opts.container.Describe()
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
		r, err := w.opts.Backend.Register(ctx, reg)
		if taken, ok := errors.AsType[*NameTakenError](err); ok {
			if err := w.awaitName(ctx, rival, taken, &reg); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		clock := newClock(r.Now)
		w.clock.Store(&clock)
		if len(r.Former) == 0 {
			w.registered(r, sent)
			return nil
		}
		if err := w.takeOver(ctx, r); err != nil {
			return err
		}
	}
}

func (w *Worker) registered(r Registered, sent shim.Instant) {
	// A session that ended may have ended because Redis was flushed or lost changes. Then the versions of the rules
	// were counted anew, and one that is known may stand for other rules.
	w.rules.outdate()
	w.extend(w.lease.begin(r.Session, sent))
	w.command(r.Order)
	w.warnOfNode()
	w.log.Info("registered", "worker_id", r.ID, "incarnation", r.Incarnation, "node", w.opts.Node, "slots", w.opts.Slots,
		"containment", w.registration().Containment, "lease", r.Lease.Text())
}

// rival is another worker that has our name, as it was seen last.
type rival struct {
	incarnation int64
	heartbeat   time.Time
	since       time.Time // when that heartbeat was seen first
}

// awaitName finds out whether the holder of our name is alive. One that was seen
// to die on this host is replaced at once; one whose heartbeat stands still for
// a whole lease, by our own clock, after that; one that gives a sign of life
// keeps the name. A server may take it away meanwhile.
func (w *Worker) awaitName(ctx context.Context, seen *rival, taken *NameTakenError, reg *task.Registration) error {
	holder := &taken.Holder
	if dead(holder.Identity) {
		w.log.Info("the worker that had this name is dead; taking its place", "pid", holder.PID)
		reg.Replaces = holder.Incarnation
		return nil
	}
	switch {
	case seen.since.IsZero():
		w.log.Info("another worker has this name; waiting whether it is still alive", "host", holder.Host, "pid", holder.PID)
	case holder.Incarnation != seen.incarnation || !holder.Heartbeat.Equal(seen.heartbeat):
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
func (w *Worker) takeOver(ctx context.Context, r Registered) error {
	w.tidy()
	if err := w.deliverSpool(ctx); err != nil {
		return err
	}
	orders, err := losses(w.opts.Name, &r)
	if err != nil { // a server sets them aside; until then they are in our way
		w.log.Error("could not take back tasks of an earlier incarnation", "error", err)
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
func (w *Worker) lossOf(ctx context.Context, orders []Commit) error {
	turn := w.opts.Backend.Turn(ctx, orders, nil)
	if turn.Moved != nil {
		return turn.Moved
	}
	for i, o := range turn.Outcomes {
		if o.Result == statemachine.Moved {
			w.log.Warn("took back a task of an earlier incarnation of this worker", "task", o.ID, "to", string(orders[i].To))
		}
	}
	return nil
}

// warnOfNode is about a name that somebody has chosen. A host name is what it is.
func (w *Worker) warnOfNode() {
	if host, _ := os.Hostname(); w.opts.Node != host && !task.DisbatchNode(w.opts.Node) {
		w.log.Warn("the node's name is no node id of Disbatch (1 to 8 letters, digits and _, a letter first): its clients may refuse it",
			"node", w.opts.Node)
	}
}

// identity names this worker so that a successor on the same host can tell
// whether its process still lives; token tells several workers of one process
// apart.
func identity(token string) string { return shim.ThisProcess() + " " + token }

// dead reports whether the process of that identity certainly has ended. What is
// unclear counts as alive.
func dead(identity string) bool {
	end := strings.LastIndexByte(identity, ' ')
	return end > 0 && shim.Gone(identity[:end])
}

// spoolName is unlike that of any other round, also where a namespace was
// emptied and its ids used again.
func (r *round) spoolName() string {
	return fmt.Sprintf("%d.%d.%s", r.Task.ID, r.Task.Round, r.Task.Current.Claim)
}

// spoolCommit keeps a report on disk. It reports whether that worked; the report
// is kept in memory as well. What comes from the disk, in another session, a server settles.
func (w *Worker) spoolCommit(name string, o *Commit) bool {
	if w.spool == nil {
		return false
	}
	var data bytes.Buffer
	kept := *o
	kept.Move = o.Unsettled()
	err := gob.NewEncoder(&data).Encode(&kept) // not JSON: outputs are bytes
	if err == nil {
		err = w.spool.Put(name, data.Bytes())
	}
	if err != nil {
		w.log.Warn("could not keep a result on disk while redis is away; it is in memory only", "error", err, "task", o.ID)
		return false
	}
	w.log.Info("keeping a result on disk while redis is away", "task", o.ID)
	return true
}

func (w *Worker) unspool(name string) {
	if err := w.spool.Remove(name); err != nil {
		w.log.Warn("could not remove a delivered result from the spool; it will be refused", "error", err)
	}
}

// deliverSpool reports what an earlier incarnation could not. The fence refuses
// what has been given to others meanwhile.
func (w *Worker) deliverSpool(ctx context.Context) error {
	if w.spool == nil {
		return nil
	}
	entries, err := w.spool.All()
	if err != nil {
		w.log.Warn("could not read all of the spool; what cannot be read stays there", "error", err)
	}
	for i := range entries {
		order, err := readSpooled(&entries[i])
		if err != nil {
			w.log.Error("a result in the spool cannot be read; leaving it there", "error", err, "result", entries[i].Name)
			continue
		}
		if err := w.deliver(ctx, entries[i].Name, order); err != nil {
			return err
		}
	}
	return nil
}

func readSpooled(e *spool.Entry) (order Commit, err error) {
	data, err := e.Data()
	if err != nil {
		return order, err
	}
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&order); err != nil {
		return order, fmt.Errorf("decode: %w", err)
	}
	return order, nil
}

// deliver reports one result of the spool. The error means that Redis is away.
func (w *Worker) deliver(ctx context.Context, name string, order Commit) error {
	outcome, err := w.applySpooled(ctx, order)
	switch {
	case errors.Is(err, task.ErrUnreachable), err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		w.log.Error("redis does not take a result from the spool; leaving it there", "error", err, "task", order.ID)
		return nil
	case outcome.Err != nil:
		w.log.Warn("a result from the spool comes too late", "error", outcome.Err, "task", order.ID)
	default:
		w.log.Info("delivered a result from the spool", "task", order.ID, "round", order.Round)
	}
	w.unspool(name)
	return nil
}
