package worker

import (
	"context"
	"strconv"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// report tells Redis how the round ended, until Redis has recorded or refused
// it or the worker's end leaves no more time. It reports whether the round is
// recorded as a success.
func (r *round) report(ctx context.Context, end *ending) bool {
	order, err := r.order(end)
	if err != nil {
		r.log.Error().Err(err).Msgf("could not report task %d", r.task.ID)
		return false
	}
	ctx, cancel := outlive(ctx, r.worker.opts.StopTimeout)
	defer cancel()
	for {
		outcomes, err := r.worker.opts.Store.Apply(ctx, order)
		switch {
		case err == nil:
			r.worker.link.Answered()
			return r.reported(&order, outcomes[0].Err)
		case ctx.Err() != nil:
			r.log.Error().Err(err).Msgf("stopped without having reported task %d", r.task.ID)
			return false
		}
		pause(ctx, r.worker.link.Failed(err))
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
		r.journal.add("handing back task " + strconv.FormatInt(t.ID, 10) + ": the worker stops")
	} else {
		order.Fields = end.fields(t.Round, text, aside)
	}
	order.Lines = r.journal.take()
	return order, nil
}

// fields are the record of the round: names and values in turn.
func (e *ending) fields(round int, text, aside string) []string {
	var fields []string
	set := func(name, value string) {
		fields = append(fields, statemachine.RoundField(round, name), value)
	}
	set("output", string(e.result.Stdout))
	set("error", text)
	if aside != "" {
		set("stderr", aside)
	}
	if res := &e.result; res.Signal != 0 {
		set("signal", res.Signal.String())
	} else if res.ExitCode >= 0 {
		set("exit_code", strconv.Itoa(res.ExitCode))
	}
	if e.result.StdoutTruncated {
		set("output_bytes", strconv.FormatInt(e.result.StdoutBytes, 10))
	}
	if e.result.StderrTruncated {
		set("error_bytes", strconv.FormatInt(e.result.StderrBytes, 10))
	}
	return fields
}
