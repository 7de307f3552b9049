package worker

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/tdf-go/tdf/internal/sandbox/spool"
	"github.com/tdf-go/tdf/internal/store"
)

// spoolName is unlike that of any other round, also where a namespace was
// emptied and its ids used again.
func (r *round) spoolName() string {
	return fmt.Sprintf("%d.%d.%s", r.task.ID, r.task.Round, r.task.Current.Claim)
}

// spoolOrder keeps a report on disk. It reports whether that worked; the report
// is kept in memory as well.
func (w *Worker) spoolOrder(name string, o *store.Order) bool {
	if w.spool == nil {
		return false
	}
	var data bytes.Buffer
	err := gob.NewEncoder(&data).Encode(o) // not JSON: outputs are bytes
	if err == nil {
		err = w.spool.Put(name, data.Bytes())
	}
	if err != nil {
		w.log.Warn().Err(err).Int64("task", o.ID).Msg("could not keep a result on disk while redis is away; it is in memory only")
		return false
	}
	w.log.Info().Int64("task", o.ID).Msg("keeping a result on disk while redis is away")
	return true
}

func (w *Worker) unspool(name string) {
	if err := w.spool.Remove(name); err != nil {
		w.log.Warn().Err(err).Msg("could not remove a delivered result from the spool; it will be refused")
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
		w.log.Warn().Err(err).Msg("could not read all of the spool; what cannot be read stays there")
	}
	for i := range entries {
		order, err := readSpooled(&entries[i])
		if err != nil {
			w.log.Error().Err(err).Str("result", entries[i].Name).Msg("a result in the spool cannot be read; leaving it there")
			continue
		}
		if err := w.deliver(ctx, entries[i].Name, order); err != nil {
			return err
		}
	}
	return nil
}

func readSpooled(e *spool.Entry) (order store.Order, err error) {
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
func (w *Worker) deliver(ctx context.Context, name string, order store.Order) error {
	outcome, err := w.applySpooled(ctx, order)
	switch {
	case errors.Is(err, store.ErrUnreachable), err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		w.log.Error().Err(err).Int64("task", order.ID).Msg("redis does not take a result from the spool; leaving it there")
		return nil
	case outcome.Err != nil:
		w.log.Warn().Err(outcome.Err).Int64("task", order.ID).Msg("a result from the spool comes too late")
	default:
		w.log.Info().Int64("task", order.ID).Int("round", order.Round).Msg("delivered a result from the spool")
	}
	w.unspool(name)
	return nil
}
