package manager

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// The sizes of a page of [Manager.Select].
const (
	defaultPage = 500
	maxPage     = 1000
)

// Select reads the tasks that a selection means, in pages of at most size (1 to
// 1000; 0 for 500). Not more than a page is held, and some thousand ids. An
// error ends it.
//
// Where nothing but IDs is given, those that are not there come too, with an
// empty state.
func (m *Manager) Select(ctx context.Context, sel Selection, size int) iter.Seq2[[]Summary, error] {
	return func(yield func([]Summary, error) bool) {
		if err := sel.check(); err != nil {
			yield(nil, err)
			return
		}
		s := m.selector(&sel, size, func(page []Summary) bool { return yield(page, nil) })
		if err := s.all(ctx); err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// check refuses what cannot be meant.
func (s *Selection) check() error {
	switch {
	case s.All && s.IDs != nil:
		return fieldError("all", "true", "given together with ids; give one of them")
	case !s.All && s.IDs == nil && !s.narrow():
		return fieldError("all", "false", "given without ids or another condition; set it to mean every task")
	}
	for _, r := range s.IDs {
		if r.First < 1 || r.Last < r.First {
			return fieldError("ids", rangeText(r), "a range of task ids from 1 on, such as 3-9")
		}
	}
	for _, state := range s.States {
		if !state.Valid() {
			return fieldError("states", string(state), "the name of a state")
		}
	}
	for _, outcome := range s.Outcomes {
		if !outcome.Ended() {
			return fieldError("outcomes", string(outcome), "the name of an outcome")
		}
	}
	if s.Limit < 0 {
		return fieldError("limit", strconv.Itoa(s.Limit), "a number that is not negative")
	}
	return nil
}

func rangeText(r IDRange) string {
	return strconv.FormatInt(r.First, 10) + "-" + strconv.FormatInt(r.Last, 10)
}

// narrow reports whether there is a condition beside IDs.
func (s *Selection) narrow() bool {
	return len(s.States) > 0 || s.narrowWithin()
}

// states are those a task may be in.
func (s *Selection) states() []statemachine.State {
	if len(s.States) > 0 {
		return s.States
	}
	everywhere := s.Archived || s.IDs != nil || len(s.Outcomes) > 0
	return slices.DeleteFunc(statemachine.States(), func(state statemachine.State) bool {
		return state == statemachine.Archived && !everywhere || len(s.Outcomes) > 0 && !state.Settled()
	})
}

// narrowWithin reports whether not every task of a state is meant.
func (s *Selection) narrowWithin() bool {
	return len(s.Outcomes) > 0 || s.Queue != "" || s.Program != "" || s.Match != nil
}
