package manager

import (
	"context"
	"errors"
	"slices"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// selector is one call of Select.
type selector struct {
	m      *Manager
	sel    *Selection
	size   int
	states []statemachine.State
	found  map[statemachine.State]int // how many were given, for the limit
	emit   func([]Summary) bool
	held   int64 // mostHeld, or a test's
}

func (m *Manager) selector(sel *Selection, size int, emit func([]Summary) bool) selector {
	if size <= 0 {
		size = defaultPage
	}
	return selector{
		m: m, sel: sel, size: min(size, maxPage), states: sel.states(), found: map[statemachine.State]int{},
		emit: emit, held: mostHeld,
	}
}

// errEnough ends a selection of which nobody wants more.
var errEnough = errors.New("enough")

// mostHeld is how many ids a selection holds. More tasks than that are found by
// walking over all ids: what changes the tasks of a set page by page must not
// page through that set.
const mostHeld = 50_000

func (s *selector) all(ctx context.Context) error {
	switch {
	case s.sel.IDs != nil:
		for _, r := range s.sel.IDs {
			if err := s.walk(ctx, []store.Span{{First: r.First, Last: r.Last}}); err != nil {
				return err
			}
		}
		return nil
	case s.sel.Newest:
		return s.newest(ctx)
	}
	counts, err := s.m.store.Count(ctx)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, state := range s.states {
		total += counts[state]
	}
	if total <= s.held {
		return s.sets(ctx)
	}
	spans, err := s.m.spans(ctx)
	if err != nil {
		return err
	}
	return s.walk(ctx, spans)
}

// spans are all ids among which there may be tasks now.
func (m *Manager) spans(ctx context.Context) ([]store.Span, error) {
	last, err := m.store.LastID(ctx)
	if err != nil {
		return nil, err
	}
	return m.store.Spans(ctx, 1, last)
}

// walk looks at ids in turn.
func (s *selector) walk(ctx context.Context, spans []store.Span) error {
	ids := make([]int64, 0, s.size)
	for _, span := range spans {
		for id := span.First; id <= span.Last; id++ {
			if ids = append(ids, id); len(ids) < s.size {
				continue
			}
			if err := s.walked(ctx, ids); err != nil {
				return err
			}
			ids = make([]int64, 0, s.size)
		}
	}
	if len(ids) == 0 {
		return context.Cause(ctx)
	}
	return s.walked(ctx, ids)
}

func (s *selector) walked(ctx context.Context, ids []int64) error {
	if err := s.page(ctx, statemachine.None, ids); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// sets takes the ids of each state at one moment.
func (s *selector) sets(ctx context.Context) error {
	seen := map[int64]bool{}
	for _, state := range s.states {
		ids, err := s.m.store.IDs(ctx, state, 0, 2*mostHeld, false)
		if err != nil {
			return err
		}
		ids = slices.DeleteFunc(ids, func(id int64) bool { return seen[id] }) // it has moved meanwhile
		for page := range slices.Chunk(ids, s.size) {
			for _, id := range page {
				seen[id] = true
			}
			if err := s.page(ctx, state, page); err != nil {
				return err
			}
		}
	}
	return nil
}

// newest pages through each state, what came last first.
func (s *selector) newest(ctx context.Context) error {
	for _, state := range s.states {
		for offset := int64(0); !s.enough(state); {
			ids, err := s.m.store.IDs(ctx, state, offset, int64(s.wanted(state)), true)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				break
			}
			offset += int64(len(ids))
			if err := s.page(ctx, state, ids); err != nil {
				return err
			}
		}
	}
	return nil
}

// enough reports whether the limit of a state is reached.
func (s *selector) enough(state statemachine.State) bool {
	return s.sel.Limit > 0 && s.found[state] >= s.sel.Limit
}

// wanted is how many ids to read next.
func (s *selector) wanted(state statemachine.State) int {
	if s.sel.Limit == 0 || s.sel.narrowWithin() {
		return s.size
	}
	return min(s.size, s.sel.Limit-s.found[state])
}

// page reads tasks, by ids that a state lists or that come from a walk, and gives
// those that are meant.
func (s *selector) page(ctx context.Context, state statemachine.State, ids []int64) error {
	tasks, err := s.read(ctx, state, ids)
	if err != nil {
		return err
	}
	tasks = slices.DeleteFunc(tasks, func(t Summary) bool { return !s.means(&t) })
	if err := s.readErrors(ctx, tasks); err != nil {
		return err
	}
	if s.sel.Match != nil {
		tasks = slices.DeleteFunc(tasks, func(t Summary) bool { return !t.matched })
	}
	tasks = slices.DeleteFunc(tasks, s.beyond)
	if len(tasks) > 0 && !s.emit(tasks) {
		return errEnough
	}
	return nil
}

// means judges a task by all conditions but Match.
func (s *selector) means(t *Summary) bool {
	if t.State == statemachine.None {
		return s.sel.IDs != nil && !s.sel.narrow()
	}
	return slices.Contains(s.states, t.State) &&
		(len(s.sel.Outcomes) == 0 || slices.Contains(s.sel.Outcomes, (&statemachine.Task{State: t.State, Outcome: t.Outcome}).End())) &&
		(s.sel.Queue == "" || s.sel.Queue == t.Queue) && (s.sel.Program == "" || s.sel.Program == t.Program)
}

// beyond counts a task and reports whether it is one too many.
func (s *selector) beyond(t Summary) bool {
	if s.enough(t.State) {
		return true
	}
	s.found[t.State]++
	return false
}
