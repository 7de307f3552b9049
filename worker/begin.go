package worker

import (
	"context"

	"github.com/tdf-go/tdf/internal/spool"
	"github.com/tdf-go/tdf/internal/timing"
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

// compareGrace warns of a program that may still be stopping while its task
// runs elsewhere already.
func (w *Worker) compareGrace(ctx context.Context) error {
	grace, err := w.opts.Store.Grace(ctx)
	if err != nil {
		return err
	}
	if timing.FromStd(w.opts.KillGrace) >= grace {
		w.log.Warn().Msgf("[worker] kill_grace = %s is not shorter than the server's [server] timeout_grace = %s s: "+
			"a task that timed out may run again before its program is gone; make one shorter or the other longer",
			w.opts.KillGrace, grace.Text())
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
