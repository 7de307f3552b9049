package manager

import (
	"context"
	"slices"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// check refuses handlers that would do nothing, and a selection that cannot be meant here.
func (h *Handlers) check() error {
	if !slices.ContainsFunc(statemachine.Outcomes(), func(o statemachine.State) bool { return h.of(o) != nil }) {
		return ErrNoHandler
	}
	o := &h.Only
	if o.Archived || len(o.Fields) > 0 || o.Newest || o.Limit != 0 {
		return fieldError("only", "a list", "conditions alone: Archived, Fields, Newest and Limit are for looking")
	}
	if !o.zero() {
		return o.check()
	}
	return nil
}

// zero reports whether nothing was selected.
func (s *Selection) zero() bool { return !s.All && s.IDs == nil && !s.narrow() }

// picks are the tasks in each outcome, told apart by a selection; nil where all are meant.
type picks map[statemachine.State]*pick

func (h *Handlers) picks() picks {
	if h.Only.IDs == nil && !h.Only.narrow() {
		return nil
	}
	of := picks{}
	for _, outcome := range statemachine.Outcomes() {
		of[outcome] = &pick{sel: h.Only, others: map[int64]bool{}}
	}
	return of
}

// pick tells the tasks in one outcome apart. Those that are not meant are remembered, so that each is looked at once.
type pick struct {
	sel    Selection
	epoch  int64          // in which ids mean what they did
	mine   []int64        // meant and not archived, the oldest first
	others map[int64]bool // not meant
	swept  time.Time      // when all that the outcome lists was last gone through
}

const (
	// sweepPause is how often a pick goes through the ids of its outcome: other clients and repairs may put a task
	// elsewhere than at the end, and what others have archived is forgotten.
	sweepPause = time.Minute
	// firstPage is how many of the newest ids are listed at first.
	firstPage = 100
)

// selected handles the tasks that are meant.
func (p *statePass) selected(ctx context.Context, k *pick) error {
	if err := k.find(ctx, p.m, p.outcome); err != nil {
		return err
	}
	return p.each(ctx, slices.Clone(k.mine), 0)
}

// find looks at the tasks that have come into the outcome, and drops those that have left it.
func (k *pick) find(ctx context.Context, m *Manager, outcome statemachine.State) error {
	life, err := m.store.Life(ctx)
	if err != nil {
		return err
	}
	if life.Epoch != k.epoch {
		k.epoch, k.mine, k.swept = life.Epoch, nil, time.Time{}
		clear(k.others)
	}
	if err := k.drop(ctx, m, outcome); err != nil {
		return err
	}
	if time.Since(k.swept) < sweepPause {
		_, err := k.newest(ctx, m, outcome, false)
		return err
	}
	began := time.Now()
	listed, err := k.newest(ctx, m, outcome, true)
	if err != nil {
		return err
	}
	for id := range k.others {
		if !listed[id] {
			delete(k.others, id)
		}
	}
	k.swept = began
	return nil
}

// drop forgets the tasks of its own that are archived.
func (k *pick) drop(ctx context.Context, m *Manager, outcome statemachine.State) error {
	var left []int64
	for page := range slices.Chunk(k.mine, maxPage) {
		found, err := m.store.Fields(ctx, page, "state")
		if err != nil {
			return err
		}
		for i, id := range page {
			if found[i]["state"] == string(outcome) {
				left = append(left, id)
			}
		}
	}
	k.mine = left
	return nil
}

// newest reads the ids of the outcome, the newest first, until it comes to those it knows, or all of them, and sorts those
// that are new. Each page begins in the middle of the one before, since tasks are archived meanwhile.
func (k *pick) newest(ctx context.Context, m *Manager, outcome statemachine.State, all bool) (listed map[int64]bool, err error) {
	mine := map[int64]bool{}
	for _, id := range k.mine {
		mine[id] = true
	}
	listed = map[int64]bool{}
	var fresh []int64
	for offset, size := int64(0), int64(firstPage); ; offset, size = offset+size/2, maxPage {
		ids, err := m.store.IDs(ctx, outcome, offset, size, true)
		if err != nil {
			return nil, err
		}
		known := true // the older half of the page
		for i, id := range ids {
			is := k.others[id] || mine[id]
			if !is && !listed[id] {
				fresh = append(fresh, id)
			}
			known = known && (is || i < len(ids)/2)
			listed[id] = true
		}
		if int64(len(ids)) < size || known && !all {
			break
		}
	}
	slices.Reverse(fresh)
	return listed, k.sort(ctx, m, outcome, fresh)
}

// names reports whether the id is among those given, if any are.
func (k *pick) names(id int64) bool {
	return k.sel.IDs == nil || slices.ContainsFunc(k.sel.IDs, IDRange{id, id}.Meets)
}

// sort looks at tasks and says which are meant.
func (k *pick) sort(ctx context.Context, m *Manager, outcome statemachine.State, fresh []int64) error {
	meant := map[int64]bool{}
	s := m.selector(&k.sel, func(found []*task.Task) bool {
		for _, t := range found {
			meant[t.ID] = true
		}
		return true
	})
	for page := range slices.Chunk(fresh, defaultPage) {
		named := slices.DeleteFunc(slices.Clone(page), func(id int64) bool { return !k.names(id) })
		if err := s.page(ctx, outcome, named); err != nil {
			return err
		}
		for _, id := range page {
			if meant[id] {
				k.mine = append(k.mine, id)
			} else {
				k.others[id] = true
			}
		}
	}
	return nil
}
