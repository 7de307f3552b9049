package worker

import (
	"context"
	"errors"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// notOpenedAgain is what the log of a task says where its worker was about to
// have it run again, and finds it cancelled.
const notOpenedAgain = "the task was cancelled: it is not opened again"

// withStop decides anew about a round that was to be opened again, where Redis
// says that a stop was asked for meanwhile. ok is false if it says anything else.
func withStop(m *statemachine.Move, refused error) (again statemachine.Move, ok bool) {
	if !errors.Is(refused, statemachine.ErrStopAsked) || m.StopAsked {
		return again, false
	}
	task := statemachine.Task{
		ID: m.ID, State: m.From, Round: m.Round, Rev: m.Rev, StopAsked: true,
		Current: statemachine.Round{Claim: m.Claim},
	}
	o := statemachine.Occurrence{Event: m.Event, Actor: m.Actor, Claim: m.Claim, Round: m.Round}
	again, err := statemachine.Decide(&task, o, 0) // there is no time left that it could depend on
	return again, err == nil
}

// applySpooled applies an order from the spool. Where a stop was asked for while it
// lay there, it decides anew, as [round.crossed] does; all that is on disk of a
// round that was to be handed back is that.
func (w *Worker) applySpooled(ctx context.Context, order store.Order) (store.Outcome, error) {
	outcomes, err := w.opts.Store.Apply(ctx, order)
	if err != nil {
		return store.Outcome{}, err
	}
	move, ok := withStop(&order.Move, outcomes[0].Err)
	if !ok {
		return outcomes[0], nil
	}
	now, err := w.opts.Store.Now(ctx)
	if err != nil {
		return store.Outcome{}, err
	}
	order.Move = move
	order.Lines = append(order.Lines, store.Line{At: now, Text: notOpenedAgain})
	if move.Event == statemachine.HandBack {
		order.Fields = append(order.Fields, statemachine.RoundField(move.Round, "error"), stoppedCancelled)
	}
	if outcomes, err = w.opts.Store.Apply(ctx, order); err != nil {
		return store.Outcome{}, err
	}
	return outcomes[0], nil
}
