package growth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Store is what growing asks of the store.
type Store interface {
	Growth(ctx context.Context, plan task.PlanID) (*plans.Growth, error)
	Grown(ctx context.Context, plan task.PlanID, nudges, trouble string, empty []plans.Came) (bool, error)
	Sources(ctx context.Context, ids []int64) ([]plans.Source, error)
	ResultOf(ctx context.Context, id int64) (task.Result, error)
	OpenAll(ctx context.Context, req tasks.OpenRequest) ([]task.Opened, error)
}

// Read reads the steps of a plan that are opened later, and how they are. A plan that has none has a view without steps. The error matches
// [task.ErrNoPlan] or [ErrTemplate].
func Read(ctx context.Context, st Store, plan task.PlanID) (*View, error) {
	kept, err := st.Growth(ctx, plan)
	if err != nil {
		return nil, err
	}
	v := &View{Template: &Template{}, Plan: kept}
	if kept.Growing <= 0 {
		return v, nil
	}
	t, err := Parse(kept.Text)
	if err != nil {
		return v, err
	}
	results := map[int64]plans.Source{}
	if ids := t.Sources(kept); len(ids) > 0 {
		found, err := st.Sources(ctx, ids)
		if err != nil {
			return nil, err
		}
		for i := range found {
			results[ids[i]] = found[i]
		}
	}
	return Look(t, kept, results), nil
}

// Pass opens what can be opened of the steps of a plan, in at most pages calls that open some. It returns how many tasks it
// has opened, and whether nothing is left to do until the plan is requeued. Any number of servers may do that
// at the same time, and die at any point.
func Pass(ctx context.Context, st Store, plan task.PlanID, pages int) (opened int, done bool, err error) {
	p := &pass{store: st, plan: plan, pages: pages}
	for p.pages > 0 && !done && err == nil {
		done, err = p.openPage(ctx)
	}
	if errors.Is(err, task.ErrPlanState) || errors.Is(err, conn.ErrGrown) {
		err = nil // it was held or called off, or another server was faster: the next pass sees how it is
	}
	return p.opened, done, err
}

type pass struct {
	store  Store
	plan   task.PlanID
	pages  int // that may still be opened
	opened int
}

// openPage reads how it is, and does one thing.
func (p *pass) openPage(ctx context.Context) (done bool, err error) {
	v, err := Read(ctx, p.store, p.plan)
	switch {
	case errors.Is(err, task.ErrNoPlan):
		return p.store.Grown(ctx, p.plan, "0", "", nil)
	case errors.Is(err, ErrTemplate):
		return p.store.Grown(ctx, p.plan, v.Plan.Nudges, err.Error(), nil)
	case err != nil:
		return false, err
	}
	why := ""
	var empty []plans.Came
	for i := range v.Status {
		if v.Plan.State != task.PlanReady {
			break
		}
		came, opened, err := p.step(ctx, v, i)
		switch _, isTrouble := errors.AsType[trouble](err); {
		case isTrouble:
			why = err.Error()
		case err != nil || opened:
			return false, err
		case came != nil:
			empty = append(empty, *came)
		}
	}
	if len(empty) > 0 {
		why = ""
	}
	return p.store.Grown(ctx, p.plan, v.Plan.Nudges, why, empty)
}

// step opens a step if it is due. Without a task to open it says so.
func (p *pass) step(ctx context.Context, v *View, i int) (came *plans.Came, opened bool, err error) {
	s, st := &v.Steps[i], &v.Status[i]
	switch {
	case st.Fate == Skipped && !v.Plan.Steps[i].Skipped:
		return &plans.Came{Step: i, Skipped: true}, false, nil
	case st.Fate != Due:
		return nil, false, nil
	}
	var lines []string
	total := len(s.Tasks)
	if s.Lines != "" {
		if lines, err = p.lines(ctx, v, i); err != nil {
			return nil, false, err
		}
		total = len(lines)
	} else if err := v.room(i, total); err != nil {
		return nil, false, err
	}
	if total == 0 {
		return &plans.Came{Step: i, Source: st.Source}, false, nil
	}
	return nil, true, p.open(ctx, v, i, lines, total)
}

// lines are those that a step is for: of the result that it was begun with, whatever became of that task since.
func (p *pass) lines(ctx context.Context, v *View, i int) ([]string, error) {
	if st := &v.Status[i]; st.Begun {
		r, err := p.store.ResultOf(ctx, st.Source)
		if err != nil {
			return nil, err
		}
		lines := Lines(r.Text)
		if len(lines) != st.Of {
			return nil, troublef("step %s: the result of task %d has changed from %d lines to %d", v.Steps[i].Name, st.Source, st.Of, len(lines))
		}
		return lines, nil
	}
	return v.lines(i, v.Results[v.known[v.Steps[i].Lines].Tasks[0]].Result)
}

// open opens the tasks of a step that are left, page by page. The script that opens a page notes it with the step, and refuses one
// that was opened before.
func (p *pass) open(ctx context.Context, v *View, i int, lines []string, total int) error {
	s, st := &v.Steps[i], &v.Status[i]
	needs := v.allNeeds(s)
	page := max(1, min(plans.PlanTasks, plans.PlanNeeds/max(1, len(needs))))
	for from := len(st.Tasks); from < total && p.pages > 0; from += page {
		req := tasks.OpenRequest{
			Key: fmt.Sprintf("grow:%d:%d:%d", p.plan, i, from), Plan: p.plan,
			Grow: &tasks.Grow{Step: i, Before: from, Of: total, Source: st.Source},
		}
		for k := from; k < min(from+page, total); k++ {
			d, err := s.task(k, lines)
			if err != nil {
				return refused(s, err)
			}
			d.Needs = needs
			req.Specs = append(req.Specs, d)
		}
		opened, err := p.store.OpenAll(ctx, req)
		if err != nil {
			return refused(s, err)
		}
		p.opened += len(opened)
		p.pages--
	}
	return nil
}

// refused makes a trouble of an error about the tasks: another try will not help.
func refused(s *Step, err error) error {
	_, field := errors.AsType[*statemachine.FieldError](err)
	_, need := errors.AsType[*tasks.NeedError](err)
	if field || need || errors.Is(err, task.ErrNoQueue) {
		return troublef("step %s: %v", s.Name, err)
	}
	return err
}

// allNeeds are the tasks that each task of a step needs.
func (v *View) allNeeds(s *Step) []task.Need {
	var needs []task.Need
	for _, n := range s.Needs {
		for _, id := range v.known[n.Step].Tasks {
			needs = append(needs, task.Need{Task: id, On: n.On})
		}
	}
	return needs
}

// trouble is why a step cannot be opened, however long one waits.
type trouble string

// Error implements error.
func (t trouble) Error() string { return string(t) }

func troublef(format string, args ...any) error { return trouble(fmt.Sprintf(format, args...)) }

// lines are those that a step is repeated for; the error is a trouble. All that can be wrong is looked at before the first task is opened.
func (v *View) lines(i int, result task.Result) ([]string, error) {
	s, lines := &v.Steps[i], Lines(result.Text)
	what := fmt.Sprintf("step %s: the result of task %d", s.Name, result.Task)
	most := s.Most
	if most <= 0 || most > MaxLines {
		most = MaxLines
	}
	switch {
	case result.Cut:
		return nil, troublef("%s was cut at output_limit: raise the limit, and retry that task", what)
	case len(lines) > most:
		return nil, troublef("%s has %d lines, and may have %d", what, len(lines), most)
	}
	for k, line := range lines {
		if strings.Contains(line, Item) || !utf8.ValidString(line) {
			return nil, troublef("%s is not text in line %d: want UTF-8 without NUL characters", what, k+1)
		}
	}
	return lines, v.room(i, len(lines))
}

// room checks the bounds of step i with that many tasks, and those of the steps that need it.
func (v *View) room(i, tasks int) error {
	s := &v.Steps[i]
	if n := v.needs(s, s.Name, 0); n > MaxNeeds || n*tasks > MaxEdges {
		return troublef("step %s: each of %d tasks would need %d; a task may need %d, and those of a step %d in all",
			s.Name, tasks, n, MaxNeeds, MaxEdges)
	}
	for k := i + 1; k < len(v.Steps); k++ {
		if n := v.needs(&v.Steps[k], s.Name, tasks); n > MaxNeeds {
			return troublef("step %s would need %d tasks with the %d of step %s; a task may need %d: put steps between that each take some of them",
				v.Steps[k].Name, n, tasks, s.Name, MaxNeeds)
		}
	}
	return nil
}

// needs counts the tasks that each task of s needs, as far as known, if the step called name has that many tasks.
func (v *View) needs(s *Step, name string, tasks int) (n int) {
	for _, need := range s.Needs {
		switch st := v.known[need.Step]; {
		case need.Step == name:
			n += tasks
		case st != nil:
			n += max(st.Of, len(st.Tasks))
		}
	}
	return n
}
