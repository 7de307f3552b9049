package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
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
	// Err is nil unless nothing was opened. It matches [task.ErrNoTask], [task.ErrNotEnded],
	// [task.ErrDamaged] or [task.ErrNoQueue], or is a *statemachine.FieldError about a
	// definition that cannot be opened now, such as an end_before that has passed.
	Err error
}

// RetryOptions go with [Manager.Retry].
type RetryOptions struct {
	ChangeOptions

	// Again opens another task where the ended one has been retried already. The new
	// one is not linked to it.
	Again bool
	// EndBefore is the end_before of the new tasks. Default: that of the ended one.
	EndBefore time.Time
}

// Retry opens new tasks with the definitions of ended ones, linked to them by
// retry_of and retried_by. A task that has been retried already answers with the
// one opened then (see [RetryOptions]). The answers are in the order of the ids; the
// error is about the calls, and comes with the answers before it.
//
// The retry of a task of a plan belongs to that plan, needs what the task needs, and
// is what its dependants that still wait go on to wait for; a plan that has failed,
// or that holds because of the task, is ready again. [Manager.RetryPlan] retries all
// that is left of a plan.
func (m *Manager) Retry(ctx context.Context, ids []int64, o RetryOptions) ([]Retried, error) {
	var err error
	if o.ChangeOptions, err = m.complete(o.ChangeOptions); err != nil {
		return nil, err
	}
	r := retrier{RetryOptions: o, m: m}
	if r.now, err = retryUntilAvailable(ctx, m, func() (statemachine.Time, error) { return m.store.RedisTime(ctx) }); err != nil {
		return nil, fmt.Errorf("retry: %w", err)
	}
	var done []Retried
	for part := range slices.Chunk(ids, m.batchSize()) {
		answers, partErr := r.part(ctx, part)
		if partErr != nil {
			err = fmt.Errorf("retry: %w", partErr)
			break
		}
		done = append(done, answers...)
	}
	return done, earlier(err, m.note(ctx, r.ChangeOptions, "retry", nil, retriedIDs(done)))
}

// retriedIDs are the tasks for which others were opened.
func retriedIDs(done []Retried) (ids []int64) {
	for i := range done {
		if r := &done[i]; r.Err == nil && r.New > 0 && !r.Existing {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

type retrier struct {
	RetryOptions

	m   *Manager
	now statemachine.Time
}

// repeat is a task to open, with the answer that tells of it.
type repeat struct {
	task.Definition
	one  *Retried
	plan task.PlanID // 0 for none
}

// retryFields are the fields read of a task to retry.
var retryFields = slices.Concat(task.DefinitionNames(), []string{"state", "outcome", retriedByField, planField, needsField})

func (r *retrier) part(ctx context.Context, ids []int64) ([]Retried, error) {
	found, err := r.m.fields(ctx, ids, retryFields...)
	if err != nil {
		return nil, err
	}
	answers := make([]Retried, len(ids))
	plans := map[task.PlanID][]repeat{}
	for i, fields := range found {
		one := &answers[i]
		one.ID = ids[i]
		d, err := r.define(one, fields)
		switch {
		case errors.Is(err, task.ErrNoTask):
			one.Err = r.m.absent(ctx, one.ID)
		case err != nil:
			one.Err = err
		case r.DryRun:
			one.New = number(fields[retriedByField])
			one.Existing = one.New != 0
		default:
			d.Needs = task.ParseNeeds(fields[needsField])
			plan := task.PlanOf(fields[planField])
			plans[plan] = append(plans[plan], repeat{d, one, plan})
		}
	}
	for _, plan := range slices.Sorted(maps.Keys(plans)) {
		open := r.open
		if plan > 0 {
			open = r.openPlanned
		}
		if err := open(ctx, plans[plan]); err != nil {
			return answers, err
		}
	}
	return answers, nil
}

func (r *retrier) define(one *Retried, fields map[string]string) (task.Definition, error) {
	if fields == nil {
		return task.Definition{}, task.ErrNoTask
	}
	if one.Ended = endOf(fields); !one.Ended.IsOutcome() {
		return task.Definition{}, fmt.Errorf("task %d is %s: %w", one.ID, one.Ended, task.ErrNotEnded)
	}
	d, err := task.Redefine(fields)
	if err != nil {
		return d, &conn.DamageError{ID: one.ID, Reason: err.Error()}
	}
	if !r.Again {
		d.RetryOf = one.ID
	}
	if !r.EndBefore.IsZero() {
		if err := d.Set("end_before", task.MomentText(r.EndBefore)); err != nil {
			return d, fmt.Errorf("task %d: %w", one.ID, err)
		}
	}
	if end, err := statemachine.ParseTime(d.Text("end_before")); err == nil && end <= r.now {
		err := fieldError("end_before", d.Text("end_before"), "still to come; give another")
		return d, fmt.Errorf("task %d: %w", one.ID, err)
	}
	return d, nil
}

// open opens tasks of one plan, or of none, all together, or each on its own if that
// cannot be: then it is known of which one.
func (r *retrier) open(ctx context.Context, all []repeat) error {
	if len(all) == 0 {
		return nil
	}
	specs := make([]task.Definition, len(all))
	for i := range all {
		specs[i] = all[i].Definition
	}
	opened, err := r.m.openUnlessBusy(ctx, tasks.OpenRequest{Key: conn.NewToken(), Life: tasks.LoneRequest, Specs: specs, Plan: all[0].plan})
	switch {
	case err == nil:
		for i, o := range opened {
			one := all[i].one
			one.New, one.Existing = o.ID, o.Existing
			r.m.did(r.ChangeOptions, "retried task", "task", one.ID, "new", o.ID, "existing", o.Existing)
		}
		return nil
	case errors.Is(err, task.ErrUnreachable) || ctx.Err() != nil:
		return err
	case len(all) == 1 || tasks.IsBusy(err):
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

// endOf is how a task ended, by its fields; the state it is in if it has not.
func endOf(f map[string]string) statemachine.State {
	t := statemachine.Task{State: statemachine.State(f["state"]), Outcome: statemachine.State(f["outcome"])}
	return t.End()
}

// RetryPlan retries every task of a plan that has ended in another way than
// succeeded and was not retried yet, cancelled dependants included, skipped ones
// not, in an order in which each retry waits for those of what it needs. A plan
// that has failed is ready again; one that somebody holds stays held. Servers look again at steps
// that could not be opened. Called again it goes on where it was cut short. The error matches [task.ErrNoPlan], or
// [task.ErrPlanState] if the plan was cancelled or was never ready; see
// [Manager.Retry] for the answers.
func (m *Manager) RetryPlan(ctx context.Context, id task.PlanID, o ChangeOptions) ([]Retried, error) {
	p, err := retryUntilAvailable(ctx, m, func() (*task.Plan, error) { return m.store.Plan(ctx, id) })
	switch {
	case err != nil:
		return nil, err
	case p.State == task.PlanCancelled || p.State == task.PlanBuilding:
		return nil, &tasks.PlanStateError{ID: id, State: p.State}
	}
	all, err := m.lost(ctx, id)
	if err != nil {
		return nil, err
	}
	if all, err = m.inOrder(ctx, all); err != nil {
		return nil, err
	}
	ids := make([]int64, len(all))
	for i := range all {
		ids[i] = all[i].one.ID
	}
	var done []Retried
	err = m.Logged(ctx, "plan retry", "", o, func(ctx context.Context) error {
		grows := false
		if done, err = m.Retry(ctx, ids, RetryOptions{ChangeOptions: o}); err == nil && p.GrowthError != "" && !o.DryRun {
			grows, err = retryUntilAvailable(ctx, m, func() (bool, error) { return m.store.RetryGrowth(ctx, id) })
		}
		if grows || len(retriedIDs(done)) > 0 {
			err = earlier(err, m.note(ctx, o, "plan retry", []string{plans.JobName(id)}, nil))
		}
		return err
	})
	return done, err
}

// lost returns the tasks of a plan to retry, with what they need.
func (m *Manager) lost(ctx context.Context, plan task.PlanID) ([]repeat, error) {
	var all []repeat
	names := []string{"state", "outcome", retriedByField, skippedField, needsField}
	err := m.eachTask(ctx, plan, names, func(ids []int64, found []map[string]string) error {
		for i, f := range found {
			end := endOf(f)
			if end.IsOutcome() && end != statemachine.Succeeded && f[retriedByField] == "" && f[skippedField] != "1" {
				all = append(all, repeat{Definition: task.Definition{Needs: task.ParseNeeds(f[needsField])}, one: &Retried{ID: ids[i]}})
			}
		}
		return nil
	})
	return all, err
}

// inOrder puts every task behind those that it needs.
func (m *Manager) inOrder(ctx context.Context, all []repeat) ([]repeat, error) {
	tails, err := m.tails(ctx, all)
	if err != nil {
		return nil, err
	}
	at := map[int64]int{}
	for i := range all {
		at[all[i].one.ID] = i
	}
	sorted, seen := make([]repeat, 0, len(all)), make([]bool, len(all))
	var visit func(i int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, n := range all[i].Needs {
			if j, too := at[tails[n.Task]]; too {
				visit(j)
			}
		}
		sorted = append(sorted, all[i])
	}
	for i := range all {
		visit(i)
	}
	return sorted, nil
}

// tails are, for what tasks need, the last ones that those were retried by.
func (m *Manager) tails(ctx context.Context, all []repeat) (map[int64]int64, error) {
	tails := map[int64]int64{}
	for i := range all {
		for _, n := range all[i].Needs {
			tails[n.Task] = n.Task
		}
	}
	return tails, m.follow(ctx, tails)
}

// follow takes each task to the last one that it was retried by.
func (m *Manager) follow(ctx context.Context, tails map[int64]int64) error {
	left := make([]int64, 0, len(tails))
	for id := range tails {
		left = append(left, id)
	}
	for len(left) > 0 {
		var further []int64
		for page := range slices.Chunk(left, planPage) {
			ids := make([]int64, len(page))
			for i, id := range page {
				ids[i] = tails[id]
			}
			found, err := m.fields(ctx, ids, retriedByField)
			if err != nil {
				return err
			}
			for i, f := range found {
				if next := number(f[retriedByField]); next > ids[i] { // a retry is always newer
					tails[page[i]] = next
					further = append(further, page[i])
				}
			}
		}
		left = further
	}
	return nil
}

func (r *retrier) openPlanned(ctx context.Context, all []repeat) error {
	all, err := r.m.inOrder(ctx, all)
	if err != nil {
		return err
	}
	for len(all) > 0 {
		n := batchOf(all)
		batch, err := r.together(ctx, all[:n])
		if err != nil {
			return err
		}
		if err := r.open(ctx, batch); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// batchOf is how many of them one call opens.
func batchOf(all []repeat) int {
	n, needs := 0, 0
	for n < len(all) && n < plans.PlanTasks && (n == 0 || needs+len(all[n].Needs) <= plans.PlanNeeds) {
		needs += len(all[n].Needs)
		n++
	}
	return n
}

// together lets the tasks of a batch need one another: a need that is retried in the
// same batch is named by its place.
func (r *retrier) together(ctx context.Context, batch []repeat) ([]repeat, error) {
	tails, err := r.m.tails(ctx, batch)
	if err != nil {
		return nil, err
	}
	place := map[int64]int{}
	batch = slices.Clone(batch)
	for i := range batch {
		needs := slices.Clone(batch[i].Needs)
		for k := range needs {
			if j, too := place[tails[needs[k].Task]]; too {
				needs[k].Task, needs[k].Index = 0, j
			}
		}
		batch[i].Needs = needs
		place[batch[i].one.ID] = i
	}
	return batch, nil
}

// alone is one task of a batch, of which all before it were opened or cannot be.
func (r *retrier) alone(batch []repeat, i int) []repeat {
	one := batch[i]
	one.Needs = slices.Clone(one.Needs)
	for k, n := range one.Needs {
		if n.Task == 0 {
			before := batch[n.Index].one
			one.Needs[k].Task, one.Needs[k].Index = cmp.Or(before.New, before.ID), 0
		}
	}
	return []repeat{one}
}

// busyPause is the time between two tries to retry a task whose dependants are
// still being told of its end by a server.
const busyPause = 50 * time.Millisecond

// openUnlessBusy is openBatch that waits some seconds for a server.
func (m *Manager) openUnlessBusy(ctx context.Context, req tasks.OpenRequest) ([]task.Opened, error) {
	giveUp := time.Now().Add(patience)
	for {
		opened, err := m.openBatch(ctx, req)
		if err == nil || !tasks.IsBusy(err) || time.Now().After(giveUp) {
			return opened, err
		}
		if !m.wait(ctx, busyPause) {
			return opened, fmt.Errorf("retry: %w", context.Cause(ctx))
		}
	}
}
