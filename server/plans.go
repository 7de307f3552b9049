package server

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planning is what carrying plans on asks of the store.
type planning interface {
	growth.Store

	DueWork(ctx context.Context, offset, limit int) ([]plans.Work, error)
	FreedTasks(ctx context.Context, plan task.PlanID, offset, limit int) ([]plans.Freed, statemachine.Time, error)
	NotifyDependants(ctx context.Context, page int, ids ...int64) (done int, err error)
}

// A script blocks Redis while it runs: how many dependants one call tells of ends, and of how many ends at most.
const (
	notifyPage  = 100
	notifyTasks = 50
)

// advancePlans tells dependants of ended tasks, moves those that may run now or never will, and opens steps whose lines are
// known. Tasks that end here may have dependants too. It returns how many tasks it moved, and whether the next pass should
// come at once.
func (s *Server) advancePlans(ctx context.Context) (moved int, again bool, err error) {
	for skip := 0; ; {
		due, err := s.store.DueWork(ctx, skip, s.opt.BatchSize)
		if err != nil || len(due) == 0 {
			return moved, again, err
		}
		n, left, grows, err := s.advanceAll(ctx, due)
		moved += n
		again = again || grows
		skip += left // the next pass looks at it again
		if err != nil {
			return moved, again, err
		}
	}
}

// advanceAll tells first, so that what several tasks free together is moved together. It returns with how many plans there is
// something left to do, and whether that is steps to be opened.
func (s *Server) advanceAll(ctx context.Context, due []plans.Work) (moved, left int, grows bool, err error) {
	var ended []int64
	var plans []plans.Work
	for _, d := range due {
		if d.Task > 0 {
			ended = append(ended, d.Task)
		} else {
			plans = append(plans, d)
		}
	}
	if err := s.tell(ctx, ended); err != nil {
		return 0, 0, false, err
	}
	for _, d := range plans {
		n, done, err := s.advancePlan(ctx, d)
		moved += n
		if err != nil {
			return moved, left, grows, err
		}
		if !done {
			left++
			grows = grows || d.Growth > 0
		}
	}
	return moved, left, grows, nil
}

// advancePlan reports whether nothing is left to do there.
func (s *Server) advancePlan(ctx context.Context, d plans.Work) (moved int, done bool, err error) {
	if d.Growth > 0 {
		return s.grow(ctx, d.Growth)
	}
	return s.moveFreed(ctx, d.Plan)
}

// tell tells all dependants of tasks how these ended.
func (s *Server) tell(ctx context.Context, ended []int64) error {
	for len(ended) > 0 {
		done, err := s.store.NotifyDependants(ctx, notifyPage, ended[:min(len(ended), notifyTasks)]...)
		if err != nil {
			return err
		}
		ended = ended[done:]
	}
	return nil
}

// growthPages is how many calls of a pass open tasks of one plan for lines: others have to be settled meanwhile.
const growthPages = 10

// grow opens steps of a plan whose lines are known.
func (s *Server) grow(ctx context.Context, plan task.PlanID) (opened int, done bool, err error) {
	opened, done, err = growth.Pass(ctx, s.store, plan, growthPages)
	if err != nil {
		return opened, done, fmt.Errorf("open steps of plan %d: %w", plan, err)
	}
	if opened > 0 {
		s.log.Info("opened steps whose lines are known", "plan", plan, "tasks", opened)
	}
	return opened, done, nil
}

// moveFreed opens the tasks of a plan that may run now, and cancels those that never will, until none is left, or none
// that can be moved now.
func (s *Server) moveFreed(ctx context.Context, plan task.PlanID) (moved int, done bool, err error) {
	for skip := 0; ; {
		freed, now, err := s.store.FreedTasks(ctx, plan, skip, s.opt.BatchSize)
		if err != nil || len(freed) == 0 {
			return moved, skip == 0, err
		}
		n, gone, err := s.apply(ctx, s.decideFreed(freed, now))
		moved += n
		skip += len(freed) - gone
		if err != nil {
			return moved, false, err
		}
	}
}

func (s *Server) decideFreed(freed []plans.Freed, now statemachine.Time) []tasks.Commit {
	commits := make([]tasks.Commit, 0, len(freed))
	for i := range freed {
		t := &freed[i]
		if t.Task.Err != nil {
			s.suspects.add(t.Task.ID)
			continue
		}
		m, err := statemachine.Decide(&t.Task.Task, statemachine.Occurrence{Event: t.Event(), Actor: statemachine.Server}, now)
		if err != nil {
			s.suspects.add(t.Task.ID)
			continue
		}
		o := s.commit(&t.Task, m)
		if t.Event() == statemachine.Cancel {
			o.Fields = append(o.Fields, "cancel_reason", reasonOf(t))
		} else {
			o.Drop = []string{"hold"} // of a plan that was held
		}
		commits = append(commits, o)
	}
	return commits
}

// reasonOf says why a task is cancelled that waits for another one.
func reasonOf(t *plans.Freed) string {
	if t.DoomedAfter > 0 {
		return fmt.Sprintf("job %s, which its job comes after, did not end as it should", plans.JobName(t.DoomedAfter))
	}
	if t.Skipped {
		return fmt.Sprintf("skipped: it was to run if task %d did not succeed", t.DoomedBy)
	}
	return fmt.Sprintf("task %d, which it needs, did not succeed", t.DoomedBy)
}
