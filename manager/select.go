package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// IDRange is the ids from First to Last, both included.
type IDRange struct{ First, Last int64 }

// Meets reports whether some id is in both ranges.
func (r IDRange) Meets(other IDRange) bool { return r.First <= other.Last && other.First <= r.Last }

// Selection says which tasks are meant: those that fit all its conditions. One
// without IDs, All or another condition is refused, so that a slip does not mean
// every task.
type Selection struct {
	// IDs are the tasks meant, one range after the other; All says that every task
	// is, as far as the other conditions go.
	IDs []IDRange
	All bool
	// States are those a task may be in, in the order wanted; an outcome means the tasks
	// that ended so, archived or not. None means every state, but Archived only where
	// IDs are given, or with Archived.
	States   []statemachine.State
	Archived bool
	// NotRetried leaves out tasks that were retried, for which their retries stand, where
	// States have outcomes and not Archived.
	NotRetried bool
	// Queue and Program are exact names; empty means any. Plan is the id of a plan, 0
	// for any.
	Queue, Program string
	Plan           task.PlanID
	// Labels are those that a task must ask for, in the form of Spec.Labels.
	Labels []string
	// Meta are attributes that a task must have, with these texts; without a text it must not have the attribute.
	Meta map[string]string
	// Match is looked for in the error of the last round that a worker has begun. Rounds
	// of the tasks that fit is that round with the beginning of the error, at most 1 KiB.
	Match *regexp.Regexp

	// Fields are hash fields to read beside those of state, outcome, round, program, queue
	// and priority.
	Fields []string
	// Newest lists, of each state, the tasks first that came into it last, at most
	// Limit of a state (0: no limit). It is for looking: tasks that move meanwhile
	// may be missed or come twice. Without it all that fit are found once, in no
	// promised order, also if they are changed page by page.
	Newest bool
	Limit  int
	page   int // how many tasks are read in one call; 0 for defaultPage
}

// summaryFields are the hash fields that are read of every task of a [Manager.Select].
var summaryFields = []string{"state", "outcome", "round", "program", "queue", "priority"}

// The sizes of a page of [Manager.Select].
const (
	defaultPage = 500
	maxPage     = 1000
)

// Select reads the tasks that a selection means. It holds not more than a page of them, and
// some thousand ids. An error ends it.
//
// Where nothing but IDs is given, those that are not there come too, with an
// empty state.
func (m *Manager) Select(ctx context.Context, sel Selection) iter.Seq2[*task.Task, error] {
	return eachOf(m.pages(ctx, sel))
}

// eachOf gives what pages hold, one by one. An error ends it.
func eachOf[T any](pages iter.Seq2[[]T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, one := range page {
				if !yield(one, nil) {
					return
				}
			}
		}
	}
}

// pages is Select a page at a time: each is read as a whole, so that its tasks may be changed before the next is.
func (m *Manager) pages(ctx context.Context, sel Selection) iter.Seq2[[]*task.Task, error] {
	return func(yield func([]*task.Task, error) bool) {
		if err := sel.check(); err != nil {
			yield(nil, err)
			return
		}
		s := m.selector(&sel, func(page []*task.Task) bool { return yield(page, nil) })
		if err := s.all(ctx); err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// EachPage calls change with the ids of all tasks that a selection means, a page at a time, until it returns an error.
func (m *Manager) EachPage(ctx context.Context, sel Selection, change func(ids []int64) error) error {
	for found, err := range m.pages(ctx, sel) {
		if err != nil {
			return err
		}
		if err := change(idsOf(found)); err != nil {
			return err
		}
	}
	return nil
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
			return fieldError("ids", fmt.Sprintf("%d-%d", r.First, r.Last), "a range of task ids from 1 on, such as 3-9")
		}
	}
	if s.Limit < 0 {
		return fieldError("limit", strconv.Itoa(s.Limit), "a number that is not negative")
	}
	return s.checkNames()
}

func (s *Selection) checkNames() error {
	for _, state := range s.States {
		if !state.Valid() {
			return fieldError("states", string(state), "the name of a state")
		}
	}
	return nil
}

func (s *Selection) narrow() bool {
	return len(s.States) > 0 || s.narrowWithin()
}

// fields are those that are read beside summaryFields.
func (s *Selection) fields() []string {
	fields := slices.Clone(s.Fields)
	if s.Plan != 0 {
		fields = append(fields, planField)
	}
	if len(s.Labels) > 0 {
		fields = append(fields, "labels")
	}
	if len(s.Meta) > 0 {
		fields = append(fields, "meta")
	}
	if s.NotRetried {
		fields = append(fields, retriedByField)
	}
	return fields
}

// states are the sets to look through for tasks that may be meant.
func (s *Selection) states() []statemachine.State {
	if s.someArchived() {
		return append(slices.Clone(s.States), statemachine.Archived)
	}
	if len(s.States) > 0 {
		return s.States
	}
	return slices.DeleteFunc(statemachine.States(), func(state statemachine.State) bool {
		return state == statemachine.Archived && !s.Archived && s.IDs == nil
	})
}

// someArchived reports whether some archived tasks are meant and others are not, by how they ended.
func (s *Selection) someArchived() bool {
	return slices.ContainsFunc(s.States, statemachine.State.IsOutcome) && !slices.Contains(s.States, statemachine.Archived)
}

// FitsArchived reports whether States mean archived tasks that ended so.
func (s *Selection) FitsArchived(outcome statemachine.State) bool {
	return len(s.States) == 0 || slices.Contains(s.States, statemachine.Archived) || slices.Contains(s.States, outcome)
}

// narrowWithin reports whether not every task of a state is meant.
func (s *Selection) narrowWithin() bool { return s.narrowSpec() || s.Match != nil }

type selector struct {
	m      *Manager
	sel    *Selection
	size   int
	states []statemachine.State
	found  map[statemachine.State]int // how many were given, for the limit
	emit   func([]*task.Task) bool
	held   int64 // mostHeld, or a test's
}

func (m *Manager) selector(sel *Selection, emit func([]*task.Task) bool) selector {
	return selector{
		m: m, sel: sel, size: cmp.Or(sel.page, defaultPage), states: sel.states(), found: map[statemachine.State]int{},
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
			if err := s.walk(ctx, []tasks.Span{{First: r.First, Last: r.Last}}); err != nil {
				return err
			}
		}
		return nil
	case s.sel.Plan != 0:
		return s.planned(ctx)
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

// planned looks at what a plan lists, the newest first if that is wanted. Of a long list what is newest of each state is found sooner
// among the tasks in that state.
func (s *selector) planned(ctx context.Context) error {
	if s.sel.Newest && s.sel.Limit > 0 {
		p, err := s.m.store.Plan(ctx, s.sel.Plan)
		if err == nil && p.Total > s.held {
			return s.newest(ctx)
		}
		if err != nil && !errors.Is(err, task.ErrNoPlan) {
			return err
		}
	}
	for n := 0; ; n++ {
		offset := n * s.size
		if s.sel.Newest {
			offset = -offset - s.size // from the end
		}
		ids, err := s.m.store.PlanTasks(ctx, s.sel.Plan, offset, s.size)
		if err != nil || len(ids) == 0 {
			return err
		}
		if s.sel.Newest {
			slices.Reverse(ids)
		}
		if err := s.walked(ctx, ids); err != nil {
			return err
		}
	}
}

// spans are all ids among which there may be tasks now.
func (m *Manager) spans(ctx context.Context) ([]tasks.Span, error) {
	last, err := m.store.LastID(ctx)
	if err != nil {
		return nil, err
	}
	return m.store.Spans(ctx, 1, last)
}

// walk looks at ids in turn.
func (s *selector) walk(ctx context.Context, spans []tasks.Span) error {
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

func (s *selector) enough(state statemachine.State) bool {
	return s.sel.Limit > 0 && s.found[state] >= s.sel.Limit
}

func (s *selector) wanted(state statemachine.State) int {
	if s.sel.Limit == 0 || s.sel.narrowWithin() || s.sel.dropsRetried() || state == statemachine.Archived && s.sel.someArchived() {
		return s.size
	}
	return min(s.size, s.sel.Limit-s.found[state])
}

// page reads tasks, by ids that a state lists or that come from a walk, and gives
// those that are meant.
func (s *selector) page(ctx context.Context, state statemachine.State, ids []int64) error {
	tasks, err := s.m.summaries(ctx, state, ids, s.sel.fields()...)
	if err == nil && state == statemachine.None {
		err = s.confirm(ctx, tasks)
	}
	if err != nil {
		return err
	}
	tasks = slices.DeleteFunc(tasks, func(t *task.Task) bool { return !s.means(t) })
	if tasks, err = s.matching(ctx, tasks); err != nil {
		return err
	}
	tasks = slices.DeleteFunc(tasks, s.beyond)
	if len(tasks) > 0 && !s.emit(tasks) {
		return errEnough
	}
	return nil
}

// means judges a task by all conditions but Match.
func (s *selector) means(t *task.Task) bool {
	if t.State == statemachine.None {
		return s.sel.IDs != nil && !s.sel.narrow()
	}
	return slices.Contains(s.states, t.State) && (t.State != statemachine.Archived || s.sel.FitsArchived(t.Outcome)) && s.sel.Fits(t)
}

// Fits reports whether a task has the queue, program, plan, labels and attributes of the selection, and was not retried if NotRetried is
// set.
func (s *Selection) Fits(t *task.Task) bool {
	return (t.RetriedBy == 0 || !s.dropsRetried()) && (s.Queue == "" || s.Queue == t.Queue) && (s.Program == "" || s.Program == t.Program) &&
		(s.Plan == 0 || s.Plan == t.Plan) &&
		!slices.ContainsFunc(s.Labels, func(label string) bool { return !slices.Contains(t.Labels, label) }) && s.fitsMeta(t)
}

func (s *Selection) fitsMeta(t *task.Task) bool {
	for name, text := range s.Meta {
		if t.Meta[name] != text {
			return false
		}
	}
	return true
}

// dropsRetried reports whether NotRetried leaves out anything.
func (s *Selection) dropsRetried() bool {
	return s.NotRetried && s.someArchived()
}

// narrowSpec reports whether Fits has a condition.
func (s *Selection) narrowSpec() bool {
	return s.Queue != "" || s.Program != "" || s.Plan != 0 || len(s.Labels) > 0 || len(s.Meta) > 0
}

// beyond counts a task and reports whether it is one too many.
func (s *selector) beyond(t *task.Task) bool {
	if s.enough(t.State) {
		return true
	}
	s.found[t.State]++
	return false
}

// PresentRounds makes the Rounds of tasks those of a list: the present round alone, of
// tasks that run with the progress, and of all, with places, with the worker and the
// node that run it or ran it, and the status that its program has reported.
func (m *Manager) PresentRounds(ctx context.Context, tasks []*task.Task, places bool) error {
	fields := []string{"progress"}
	for _, t := range tasks {
		t.Rounds = nil
	}
	if places {
		fields = append(fields, "worker", "node", "status")
	} else {
		tasks = slices.DeleteFunc(slices.Clone(tasks), func(t *task.Task) bool { return t.State != statemachine.Running })
	}
	return m.eachRound(ctx, tasks, presentRound, fields, func(t *task.Task, r task.Round) {
		t.Rounds = []task.Round{r}
		t.Rounds = t.Present()
	})
}
