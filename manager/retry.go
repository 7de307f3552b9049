package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// Retried says what became of the retry of one task.
type Retried struct {
	// ID is the ended task, Ended how it ended.
	ID    int64
	Ended statemachine.State
	// New is the task opened for it, 0 in a dry run of one that has none. Existing
	// says that it was there before: the same task had been retried already.
	New      int64
	Existing bool
	// Err is nil unless nothing was opened. It matches [ErrNotFound], [ErrNotEnded],
	// [ErrDamaged] or [ErrNoQueue], or is a *statemachine.FieldError about a
	// definition that cannot be opened now, such as an end_before that has passed.
	Err error
}

// Retry opens new tasks with the definitions of ended ones, linked to them by
// retry_of and retried_by. A task that has been retried already answers with the
// one opened then (see [Again]). The answers are in the order of the ids; the
// error is about the calls, and comes with the answers before it.
//
// The retry of a task of a plan belongs to that plan, needs what the task needs, and
// is what its dependants that still wait go on to wait for; a plan that has failed,
// or that holds because of the task, is ready again. [Manager.RetryPlan] retries all
// that is left of a plan.
func (m *Manager) Retry(ctx context.Context, ids []int64, opts ...ChangeOption) ([]Retried, error) {
	options, err := m.changing(opts)
	if err != nil {
		return nil, err
	}
	r := retrier{changing: options, m: m}
	if r.now, err = patiently(ctx, m, func() (statemachine.Time, error) { return m.store.RedisTime(ctx) }); err != nil {
		return nil, fmt.Errorf("retry: %w", err)
	}
	var done []Retried
	for part := range slices.Chunk(ids, m.batchSize()) {
		answers, err := r.part(ctx, part)
		if err != nil {
			return done, fmt.Errorf("retry: %w", err)
		}
		done = append(done, answers...)
	}
	return done, nil
}

// retrier is one call of Retry.
type retrier struct {
	changing
	m   *Manager
	now statemachine.Time
}

// repeat is a task to open, with the answer that tells of it.
type repeat struct {
	spec store.Spec
	one  *Retried
	plan int64 // 0 for none
}

// retryFields are what is read of a task that is to be retried.
var retryFields = slices.Concat(definitionFields, []string{retriedByField, planField, needsField})

func (r *retrier) part(ctx context.Context, ids []int64) ([]Retried, error) {
	found, err := patiently(ctx, r.m, func() ([]map[string]string, error) { return r.m.store.Fields(ctx, ids, retryFields...) })
	if err != nil {
		return nil, err
	}
	answers := make([]Retried, len(ids))
	plans := map[int64][]repeat{}
	for i, fields := range found {
		one := &answers[i]
		one.ID = ids[i]
		spec, err := r.spec(one, fields)
		switch {
		case errors.Is(err, ErrNotFound):
			one.Err = r.m.absent(ctx, one.ID)
		case err != nil:
			one.Err = err
		case r.dry:
			one.New = number(fields[retriedByField])
			one.Existing = one.New != 0
		default:
			spec.Needs = store.ParseNeeds(fields[needsField])
			plan := number(fields[planField])
			plans[plan] = append(plans[plan], repeat{spec, one, plan})
		}
	}
	for _, plan := range slices.Sorted(maps.Keys(plans)) {
		if err := r.openAll(ctx, plan, plans[plan]); err != nil {
			return answers, err
		}
	}
	return answers, nil
}

// openAll opens tasks of one plan, or of none.
func (r *retrier) openAll(ctx context.Context, plan int64, all []repeat) error {
	if plan > 0 {
		return r.openPlanned(ctx, all)
	}
	return r.open(ctx, all)
}

// spec is the definition of the task to open.
func (r *retrier) spec(one *Retried, fields map[string]string) (store.Spec, error) {
	if fields == nil {
		return store.Spec{}, ErrNotFound
	}
	if one.Ended = endOf(fields); !one.Ended.Ended() {
		return store.Spec{}, fmt.Errorf("task %d is %s: %w", one.ID, one.Ended, ErrNotEnded)
	}
	spec, err := definitionOf(one.ID, fields)
	if err != nil {
		return spec, err
	}
	if !r.again {
		spec.RetryOf = one.ID
	}
	spec.EndBefore = timeText(r.endBefore, spec.EndBefore)
	if err := spec.Check(); err != nil {
		return spec, fmt.Errorf("task %d: %w", one.ID, err)
	}
	if end, err := statemachine.ParseTime(spec.EndBefore); err == nil && end <= r.now {
		err := fieldError("end_before", spec.EndBefore, "still to come; give another")
		return spec, fmt.Errorf("task %d: %w", one.ID, err)
	}
	return spec, nil
}

// open opens tasks of one plan, or of none, all together, or each on its own if that
// cannot be: then it is known of which one.
func (r *retrier) open(ctx context.Context, all []repeat) error {
	if len(all) == 0 {
		return nil
	}
	specs := make([]store.Spec, len(all))
	for i := range all {
		specs[i] = all[i].spec
	}
	opened, err := r.m.openUnlessBusy(ctx, store.OpenRequest{Key: store.NewToken(), Life: store.LoneRequest, Specs: specs, Plan: all[0].plan})
	switch {
	case err == nil:
		for i, o := range opened {
			one := all[i].one
			one.New, one.Existing = o.ID, o.Existing
			r.m.log.Info("retried task", "task", one.ID, "new", o.ID, "existing", o.Existing, "by", r.by)
		}
		return nil
	case errors.Is(err, ErrUnreachable) || ctx.Err() != nil:
		return err
	case len(all) == 1 || store.IsBusy(err):
		for i := range all {
			all[i].one.Err = err
		}
		return nil
	}
	for i := range all {
		if err := r.open(ctx, r.alone(all, i)); err != nil {
			return err
		}
	}
	return nil
}
