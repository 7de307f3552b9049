package server

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

const (
	// retirePause is the time between two looks for archived tasks that are to go, when there are no more.
	retirePause = time.Second
	// retireTurn is how long a server that sees to it may be silent before another one does.
	retireTurn = 15 * time.Second
	// retireBatch is how many ids of such tasks one look brings.
	retireBatch = 1000
	// indexBatch is how many ids of tasks that were archived before there was a retention are looked at in one call, and
	// indexCalls is how many calls there are between two looks for tasks that are to go.
	indexBatch, indexCalls = 200, 50
)

// retirer sees to it that archived tasks leave Redis when the retention says so. Only one server at a time does, for a
// turn; should two do so all the same, each task goes once.
type retirer struct {
	store *store.Store
	log   zerolog.Logger
	redis *link.Link
	rules []store.Retention
	turn  store.PurgeTurn
	// copies keeps the tasks before they go; nil if nobody wants that.
	copies *copies
	// said is what was logged last about a call that failed: it fails again each second.
	said string
}

func newRetirer(s *Server) *retirer {
	return &retirer{
		store: s.store, log: s.log, redis: link.New(zerolog.Nop()), // the passes say it
		rules: s.opt.Retention, turn: store.PurgeTurn{By: store.NewToken(), For: retireTurn}, copies: s.copies,
	}
}

// retire looks for archived tasks that are to go until ctx ends. Without a retention it does nothing.
func (s *Server) retire(ctx context.Context, _ chan struct{}) {
	if len(s.opt.Retention) == 0 {
		return
	}
	r := newRetirer(s)
	defer r.copies.close()
	for ctx.Err() == nil {
		more, err := r.pass(ctx)
		r.copies.tend(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, errCopies) && err.Error() != r.said {
			r.said = err.Error()
			r.log.Error().Err(err).Msg("archived tasks could not be removed")
		}
		if !more || err != nil {
			timing.Pause(ctx, retirePause)
		}
	}
}

// pass removes some tasks, and reports whether there are more.
func (r *retirer) pass(ctx context.Context) (more bool, err error) {
	behind, err := r.index(ctx)
	if err != nil || r.copies.resting() {
		return false, err
	}
	found, _, mine, err := r.store.Outdated(ctx, r.turn, r.rules, retireBatch, nil)
	if err != nil || !mine {
		return behind, err
	}
	gone, due := int64(0), int64(0)
	for i := range found {
		due += found[i].Due
		n, err := r.let(ctx, found[i].Outcome, found[i].IDs)
		gone += n
		if err != nil {
			return false, err
		}
	}
	if gone > 0 {
		r.log.Debug().Int64("tasks", gone).Msg("removed archived tasks")
	}
	return behind || due > gone && gone > 0, nil
}

// index notes tasks that were archived before there was a retention, a part of them at a time; it reports whether there
// are more.
func (r *retirer) index(ctx context.Context) (more bool, err error) {
	from, to, err := r.store.KeepIndex(ctx)
	if err != nil {
		return false, err
	}
	for range indexCalls {
		if from >= to {
			return false, nil
		}
		spans, upTo, err := r.store.SomeSpans(ctx, from+1, to)
		if err != nil {
			return false, err
		}
		ids, last := part(spans, upTo, indexBatch)
		if _, err := r.store.Retain(ctx, ids, last); err != nil {
			return false, err
		}
		from = last
	}
	return from < to, nil
}

// let removes tasks, if there is to be a copy of them after that was made.
func (r *retirer) let(ctx context.Context, outcome statemachine.State, ids []int64) (gone int64, err error) {
	if r.copies == nil {
		tasks, err := r.read(ctx, outcome, ids)
		if err != nil {
			return 0, err
		}
		return r.purge(ctx, tasks)
	}
	for len(ids) > 0 {
		tasks, err := r.copies.keep(ctx, outcome, ids)
		if err != nil {
			return gone, err
		}
		ids = ids[len(tasks):]
		n, err := r.purge(ctx, tasks)
		gone += n
		if err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// read reads which revision the tasks have now.
func (r *retirer) read(ctx context.Context, outcome statemachine.State, ids []int64) ([]store.Outgoing, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	fields, err := r.store.Fields(ctx, ids, "rev")
	if err != nil {
		return nil, err
	}
	tasks := make([]store.Outgoing, len(ids))
	for i, id := range ids {
		rev, _ := strconv.ParseInt(fields[i]["rev"], 10, 64)
		tasks[i] = store.Outgoing{ID: id, Rev: rev, Outcome: outcome}
	}
	return tasks, nil
}

// purge removes tasks in calls that do not block Redis for long, and returns how many were removed, or set aside because
// something keeps them.
func (r *retirer) purge(ctx context.Context, tasks []store.Outgoing) (gone int64, err error) {
	for len(tasks) > 0 {
		page := tasks[:min(store.PurgePage, len(tasks))]
		tasks = tasks[len(page):]
		answers, err := r.store.Purge(ctx, page)
		if err != nil {
			return gone, err
		}
		for _, a := range answers {
			if a != store.PurgeChanged {
				gone++
			}
		}
	}
	return gone, nil
}
