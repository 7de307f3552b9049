package worker

import (
	"context"
	"errors"
	"strconv"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// report tells Redis how the round ended, until Redis has recorded or refused
// it or ctx leaves no more time. While Redis does not take it the report waits
// on disk too, for a later incarnation. It tells whether the round is recorded
// as a success.
func (r *round) report(ctx context.Context, end *ending) bool {
	order, err := r.order(end)
	if err != nil {
		r.log.Error().Err(err).Msgf("could not report task %d", r.task.ID)
		return false
	}
	spooled, cut := false, false
	for {
		outcomes, err := r.worker.opts.Store.Apply(ctx, order)
		switch {
		case err == nil:
			r.worker.reporting.answered()
			if spooled {
				r.worker.unspool(r.spoolName())
			}
			return r.reported(&order, outcomes[0].Err)
		case ctx.Err() == nil && !cut && !errors.Is(err, store.ErrUnreachable):
			cut = true
			r.shorten(&order, end, err)
			continue
		}
		spooled = spooled || r.worker.spoolOrder(r.spoolName(), &order)
		if ctx.Err() != nil {
			r.log.Error().Err(err).Bool("kept_on_disk", spooled).Msgf("stopped without having reported task %d", r.task.ID)
			return false
		}
		timing.Pause(ctx, r.worker.reporting.failed(err))
	}
}

// shorten replaces a record that Redis does not take by one that says so.
func (r *round) shorten(order *store.Order, end *ending, err error) {
	r.log.Error().Err(err).Msgf("redis does not take the report of task %d", r.task.ID)
	if end.event == statemachine.HandBack {
		return
	}
	short := ending{event: end.event, result: notRun(), trouble: "the round's output could not be stored: " + err.Error()}
	if again, err := r.order(&short); err == nil {
		again.Lines = append(order.Lines, again.Lines...)
		*order = again
	}
}

// reported logs what became of the report.
func (r *round) reported(order *store.Order, refused error) bool {
	id := r.task.ID
	if refused != nil {
		r.log.Warn().Err(refused).Msgf(refusalText(order.Event), id)
		return false
	}
	for _, edge := range order.Edges() {
		r.log.Info().Msgf("moving task %d: %s -> %s", id, edge.From, edge.To)
	}
	if order.Event == statemachine.StopOverdue {
		r.log.Warn().Msgf("task %d was terminated (timeout)", id)
	}
	return order.Event == statemachine.Report && !order.Failed
}

func refusalText(event statemachine.Event) string {
	switch event {
	case statemachine.HandBack:
		return "could not hand back task %d (taken back by the server?)"
	case statemachine.StopOverdue:
		return "could not mark task %d as timed out (timed out by server?)"
	default:
		return "could not mark task %d as executed (timed out by server?)"
	}
}

// order is the decided move with the round's record.
func (r *round) order(end *ending) (store.Order, error) {
	t := r.task
	text, aside := end.errorText(t.FailOn)
	move, err := statemachine.Decide(&t.Task, statemachine.Occurrence{
		Event: end.event, Actor: statemachine.Worker,
		Claim: t.Current.Claim, Round: t.Round, Failed: text != "",
	}, r.clock.now())
	if err != nil {
		return store.Order{}, err
	}
	order := store.Order{Move: move, Writer: r.worker.opts.Name, Bucket: t.Bucket}
	if end.event == statemachine.HandBack {
		r.journal.add("handing back task " + strconv.FormatInt(t.ID, 10) + ": " + end.why.Error())
	} else {
		order.Fields = end.fields(t.Round, text, aside)
		if p, fresh := r.pollProgress(); fresh {
			order.Fields = append(order.Fields, statemachine.RoundField(t.Round, "progress"), p.String())
		}
		drop(&order, dropRound(t.Round, r.worker.opts.KeepRounds))
	}
	order.Lines = r.journal.take()
	return order, nil
}
