package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// report tells Redis how the round ended, until Redis has recorded or refused
// it or ctx leaves no more time. While Redis does not take it the report waits
// on disk too, for a later incarnation. It tells whether the round is recorded
// as a success, and what the slot has to do next, if the report has brought that.
func (r *round) report(ctx context.Context, end *ending) (success bool, next *assignment) {
	r.refuseCut(ctx, end)
	r.countShortage(ctx, end)
	order, err := r.order(end)
	if err != nil {
		r.log.Error().Err(err).Msgf("could not report task %d", r.task.ID)
		return false, nil
	}
	spooled, cut := false, false
	for {
		l := &letter{order: &order, slot: r.successor(&order, end, next)}
		r.worker.outbox.send(ctx, l)
		err := l.err
		if l.next != nil {
			next = l.next
		}
		switch {
		case err == nil && r.crossed(&order, end, l.outcome.Err):
			continue
		case err == nil:
			r.worker.reporting.answered()
			if spooled {
				r.worker.unspool(r.spoolName())
			}
			return r.reported(&order, l.outcome.Err), next
		case ctx.Err() == nil && !cut && !errors.Is(err, store.ErrUnreachable):
			cut = true
			r.shorten(&order, end, err)
			continue
		}
		spooled = spooled || r.worker.spoolOrder(r.spoolName(), &order)
		if ctx.Err() != nil {
			r.log.Error().Err(err).Bool("kept_on_disk", spooled).Msgf("stopped without having reported task %d", r.task.ID)
			return false, next
		}
		timing.Pause(ctx, r.worker.reporting.failed(err))
	}
}

// successor is the slot if it may have another task at once, else nil.
func (r *round) successor(order *store.Order, end *ending, next *assignment) *slot {
	success := order.Event == statemachine.Report && !order.Failed
	if r.slot == nil || next != nil || end.stuck != nil || end.unfit() || r.worker.shortage.now() != "" ||
		r.worker.opts.pauseAfter(success) > 0 {
		return nil
	}
	return r.slot
}

// crossed decides anew about a round that was to be opened again, where Redis
// says that the task was cancelled meanwhile. It reports whether there is a new
// order.
func (r *round) crossed(order *store.Order, end *ending, refused error) bool {
	move, ok := withStop(&order.Move, refused)
	if !ok {
		return false
	}
	r.task.StopAsked = true
	if end.event == statemachine.HandBack {
		end.trouble = withLine(end.trouble, stoppedCancelled)
	}
	r.journal.add(notOpenedAgain)
	text, aside := end.errorText(r.task.FailOn)
	again := r.recorded(move, end, text, aside)
	again.Lines = append(order.Lines, again.Lines...)
	*order = again
	return true
}

// shorten replaces a record that Redis does not take by one that says so.
func (r *round) shorten(order *store.Order, end *ending, err error) {
	r.log.Error().Err(err).Msgf("redis does not take the report of task %d", r.task.ID)
	if end.event == statemachine.HandBack {
		return
	}
	short := ending{event: end.event, result: notRun()}
	short.fails(nil, &ownError{"the round's output could not be stored: " + err.Error()})
	if end.event != statemachine.Report {
		short.class = end.class
	}
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
	switch {
	case order.Event == statemachine.StopOverdue:
		r.log.Warn().Msgf("task %d was terminated (timeout)", id)
	case order.To == statemachine.Terminated:
		r.log.Info().Msgf("task %d was terminated (cancelled)", id)
	}
	return order.Event == statemachine.Report && !order.Failed
}

func refusalText(event statemachine.Event) string {
	switch event {
	case statemachine.HandBack:
		return "could not hand back task %d (taken back by the server?)"
	case statemachine.StopOverdue:
		return "could not mark task %d as timed out (timed out by server?)"
	case statemachine.Terminate:
		return "could not mark task %d as terminated (taken back by the server?)"
	default:
		return "could not mark task %d as executed (timed out by server?)"
	}
}

// order is the decided move with the round's record.
func (r *round) order(end *ending) (store.Order, error) {
	t := r.task
	text, aside := end.errorText(t.FailOn)
	o := statemachine.Occurrence{
		Event: end.event, Actor: statemachine.Worker, Claim: t.Current.Claim, Round: t.Round,
		Failed: text != "", Random: rand.Float64(),
	}
	if o.Failed {
		o.Class = end.class
	}
	o.ExitCode, o.HasExit = end.result.exit()
	move, err := statemachine.Decide(&t.Task, o, r.clock.now())
	if err != nil {
		return store.Order{}, err
	}
	return r.recorded(move, end, text, aside), nil
}

// recorded is a decided move with the record of the round, whose error is text.
func (r *round) recorded(move statemachine.Move, end *ending, text, aside string) store.Order {
	t := r.task
	order := store.Order{Move: move, Writer: r.worker.opts.Name, Bucket: t.Bucket, Node: end.news(text != "")}
	if move.Event == statemachine.HandBack && move.NextRound {
		r.journal.add("handing back task " + strconv.FormatInt(t.ID, 10) + ": " + end.why.Error())
		if class := declined(end.why); class != "" {
			order.Fields = []string{statemachine.RoundField(t.Round, "class"), string(class)}
		}
	} else {
		order.Fields = end.fields(t.Round, text, aside)
		if p, fresh := r.pollProgress(); fresh {
			order.Fields = append(order.Fields, statemachine.RoundField(t.Round, "progress"), p.String())
		}
		drop(&order, dropRound(t.Round, r.worker.opts.KeepRounds))
	}
	order.Lines = r.journal.take()
	return order
}
