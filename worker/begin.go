package worker

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/spool"
)

// openSpool opens the spool. The worker can do without: results are then kept in
// memory only.
func (w *Worker) openSpool() {
	var err error
	if w.spool, err = spool.Open(w.opts.SpoolDir, w.opts.Store.Mark()+"."+w.opts.Store.Namespace(), w.opts.Name); err != nil {
		w.log.Warn().Err(err).Str("spool_dir", w.opts.SpoolDir).
			Msg("cannot keep results on disk while redis is away; they will be in memory only")
	}
}

func (w *Worker) closeSpool() {
	if w.spool == nil {
		return
	}
	if err := w.spool.Close(); err != nil {
		w.log.Warn().Err(err).Msg("could not close the spool")
	}
}

// begin checks Redis, takes the name, and puts in order what an earlier
// incarnation has left behind.
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
	if err := w.register(ctx); err != nil {
		return err
	}
	w.log.Debug().Str("redis", info.Version).Msg("redis is fit")
	return nil
}

// compareGrace refuses a grace that does not fit into that of the servers, where one
// has published it. Should a server publish a shorter one later, it waits longer than
// that for the worker to stop an overdue program.
func (w *Worker) compareGrace(ctx context.Context) error {
	grace, published, err := w.opts.Store.Grace(ctx)
	if err != nil {
		return err
	}
	if published && timing.FromStd(w.opts.KillGrace) >= grace {
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
	if w.opts.Container == nil {
		return // handlers leave nothing
	}
	killed, err := w.opts.Container.Sweep()
	if err != nil {
		w.log.Warn().Err(err).Msg("could not kill everything an earlier incarnation has left")
	}
	if killed > 0 {
		w.log.Warn().Int("processes", killed).Msg("killed what an earlier incarnation of this worker has left")
	}
	w.sweepPrivate()
}
