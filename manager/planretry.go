package manager

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// RetryPlan retries every task of a plan that has ended in another way than
// succeeded and was not retried yet, cancelled dependants included, skipped ones
// not, in an order in which each retry waits for those of what it needs. A plan
// that has failed is ready again; one that somebody holds stays held. Servers look again at steps
// that could not be opened. Called again it goes on where it was cut short. The error matches [ErrNoPlan], or
// [ErrPlanState] if the plan was cancelled or was never ready; see
// [Manager.Retry] for the answers.
func (m *Manager) RetryPlan(ctx context.Context, id int64, opts ...ChangeOption) ([]Retried, error) {
	p, err := patiently(ctx, m, func() (*store.Plan, error) { return m.store.Plan(ctx, id) })
	switch {
	case err != nil:
		return nil, err
	case p.State == store.PlanCancelled || p.State == store.PlanBuilding:
		return nil, &store.PlanStateError{ID: id, State: p.State}
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
	done, err := m.Retry(ctx, ids, opts...)
	if err != nil || p.GrowthError == "" {
		return done, err
	}
	c, err := m.changing(opts)
	if err == nil && !c.dry {
		_, err = patiently(ctx, m, func() (bool, error) { return m.store.Regrow(ctx, id) })
	}
	return done, err
}

// lost are the tasks of a plan that are to be retried, with what they need.
func (m *Manager) lost(ctx context.Context, plan int64) ([]repeat, error) {
	var all []repeat
	names := []string{"state", "outcome", retriedByField, skippedField, needsField}
	err := m.eachTask(ctx, plan, names, func(ids []int64, found []map[string]string) error {
		for i, f := range found {
			end := endOf(f)
			if end.Ended() && end != statemachine.Succeeded && f[retriedByField] == "" && f[skippedField] != "1" {
				all = append(all, repeat{spec: store.Spec{Needs: store.ParseNeeds(f[needsField])}, one: &Retried{ID: ids[i]}})
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
		for _, n := range all[i].spec.Needs {
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
		for _, n := range all[i].spec.Needs {
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
			found, err := patiently(ctx, m, func() ([]map[string]string, error) { return m.store.Fields(ctx, ids, retriedByField) })
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

// openPlanned opens retries of one plan, what they need first.
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
	for n < len(all) && n < store.PlanTasks && (n == 0 || needs+len(all[n].spec.Needs) <= store.PlanNeeds) {
		needs += len(all[n].spec.Needs)
		n++
	}
	return n
}

// together lets the tasks of a batch need one another: what is to be retried in it
// is named by its place.
func (r *retrier) together(ctx context.Context, batch []repeat) ([]repeat, error) {
	tails, err := r.m.tails(ctx, batch)
	if err != nil {
		return nil, err
	}
	place := map[int64]int{}
	batch = slices.Clone(batch)
	for i := range batch {
		needs := slices.Clone(batch[i].spec.Needs)
		for k := range needs {
			if j, too := place[tails[needs[k].Task]]; too {
				needs[k].Task, needs[k].Index = 0, j
			}
		}
		batch[i].spec.Needs = needs
		place[batch[i].one.ID] = i
	}
	return batch, nil
}

// alone is one task of a batch, of which all before it were opened or cannot be.
func (r *retrier) alone(batch []repeat, i int) []repeat {
	one := batch[i]
	one.spec.Needs = slices.Clone(one.spec.Needs)
	for k, n := range one.spec.Needs {
		if n.Task == 0 {
			before := batch[n.Index].one
			one.spec.Needs[k].Task, one.spec.Needs[k].Index = orID(before.New, before.ID), 0
		}
	}
	return []repeat{one}
}

func orID(id, otherwise int64) int64 {
	if id == 0 {
		return otherwise
	}
	return id
}

// busyPause is the time between two tries to retry a task whose dependants are
// still being told of its end by a server.
const busyPause = 50 * time.Millisecond

// openUnlessBusy is openBatch that waits some seconds for a server.
func (m *Manager) openUnlessBusy(ctx context.Context, req store.OpenRequest) ([]store.Opened, error) {
	giveUp := time.Now().Add(patience)
	for {
		opened, err := m.openBatch(ctx, req)
		if err == nil || !store.IsBusy(err) || time.Now().After(giveUp) {
			return opened, err
		}
		if !m.wait(ctx, busyPause) {
			return opened, fmt.Errorf("retry: %w", context.Cause(ctx))
		}
	}
}
