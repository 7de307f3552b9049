package manager

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// NewPlan makes a plan and returns its id. Tasks are added by [InPlan]; nothing of it runs before
// [Manager.ReadyPlan]. The error about an invalid spec is a *statemachine.FieldError. The error
// matches [task.ErrRequestKey], and comes with the id of that plan, if the RequestKey was used for
// another one. Package plan is the convenient way to build one.
func (m *Manager) NewPlan(ctx context.Context, spec task.PlanSpec) (task.PlanID, error) {
	if err := checkLine("name", spec.Name); err != nil {
		return 0, err
	}
	spec.RequestKey = cmp.Or(spec.RequestKey, conn.NewToken())
	id, err := retryUntilAvailable(ctx, m, func() (task.PlanID, error) { return m.store.NewPlan(ctx, spec) })
	if err == nil {
		m.log.Info("made plan", "plan", id, "name", spec.Name)
	}
	return id, err
}

// Plan returns the plan with that id. The error matches [task.ErrNoPlan] if there is none.
func (m *Manager) Plan(ctx context.Context, id task.PlanID) (*task.Plan, error) {
	return m.store.Plan(ctx, id)
}

// Plans reads the plans that are there, the newest first. Those that are made meanwhile may
// be missing. An error ends it.
func (m *Manager) Plans(ctx context.Context) iter.Seq2[task.Plan, error] {
	return eachOf(func(yield func([]task.Plan, error) bool) {
		seen := map[task.PlanID]bool{}
		// Who wants the newest ones need not list all. The others are listed at one moment: places slip while plans come and go.
		for _, most := range []int{firstPage, math.MaxInt} {
			ids, err := m.store.PlanIDs(ctx, 0, most)
			if err != nil {
				yield(nil, err)
				return
			}
			for page := range slices.Chunk(slices.DeleteFunc(ids, func(id task.PlanID) bool { return seen[id] }), planPage) {
				for _, id := range page {
					seen[id] = true
				}
				if plans, err := m.store.PlansOf(ctx, page); !yield(plans, err) || err != nil {
					return
				}
			}
		}
	})
}

// PlanTasks lists the ids of a plan's tasks in the order in which they were added:
// retried tasks and their retries too, and those added while it lists. A plan that does
// not exist has no tasks. An error ends the list.
func (m *Manager) PlanTasks(ctx context.Context, id task.PlanID) iter.Seq2[int64, error] {
	return eachOf(m.planPages(ctx, id))
}

// InPlan adds the tasks to a plan, in calls of at most 100 tasks or 100 needs.
// What the spec of a task and its queue leave open is as plans have it
// (max_fails 5, retry_delay 100 ms, growing by 1.5 up to 10 s), whatever
// [task_defaults] says of these four. The error may match [task.ErrNoPlan] or
// [task.ErrPlanState], or be a *[NeedError].
func InPlan(id task.PlanID) SubmitOption {
	return func(s *submission) { s.plan, s.job, s.size = id, nil, min(s.size, plans.PlanTasks) }
}

// resolve puts ids for what was opened before in the same submission.
func (s *submission) resolve(needs []task.Need) []task.Need {
	if len(needs) == 0 {
		return nil
	}
	resolved := make([]task.Need, 0, len(needs))
	for _, n := range needs {
		switch {
		case n.Task != 0:
		case n.Index >= 0 && n.Index < len(s.opened):
			n.Task, n.Index = s.opened[n.Index].ID, 0
		default:
			n.Index -= len(s.opened)
		}
		resolved = append(resolved, n)
	}
	return resolved
}

// full reports whether a batch with that number of needs has no room for a task with more.
func (s *submission) full(more int) bool {
	return len(s.batch.tasks) > 0 && (len(s.batch.tasks) >= s.size || s.batch.needs+more > plans.PlanNeeds)
}

// ReadyPlan lets the tasks of a plan run; more may be added later. One that was
// ready before stays as it is, also if it is held (see [Manager.ResumePlan]) or
// over: a program that begins again may call it again. A plan without tasks is
// completed at once. The error matches [task.ErrNoPlan], or [task.ErrPlanState] if it was
// cancelled.
func (m *Manager) ReadyPlan(ctx context.Context, id task.PlanID) error {
	p, err := retryUntilAvailable(ctx, m, func() (*task.Plan, error) { return m.store.Plan(ctx, id) })
	if err != nil || p.State == task.PlanHeld {
		return err
	}
	return m.steer(ctx, id, task.PlanReady, "")
}

// HoldPlan keeps the rest of a ready plan from starting, until [Manager.ResumePlan]:
// its open tasks are held, running ones go on. Called again, it holds tasks that
// have been opened again meanwhile. The error matches [task.ErrNoPlan] or
// [task.ErrPlanState].
func (m *Manager) HoldPlan(ctx context.Context, id task.PlanID, o ChangeOptions) error {
	return m.stopPlan(ctx, id, statemachine.Hold, o)
}

// holder says who holds a plan, and why; never as the id of a task, which would
// mean that it holds because of that one.
func holder(by, reason string) string {
	if reason != "" {
		return by + ": " + reason
	}
	if _, err := strconv.ParseInt(by, 10, 64); err == nil {
		return "manager " + by
	}
	return by
}

// ResumePlan lets a held plan go on, whatever it was held by. What needs a task that
// failed goes on waiting until that is retried. The error matches [task.ErrNoPlan], or
// [task.ErrPlanState] if the plan is neither held nor ready.
func (m *Manager) ResumePlan(ctx context.Context, id task.PlanID) error {
	p, err := retryUntilAvailable(ctx, m, func() (*task.Plan, error) { return m.store.Plan(ctx, id) })
	if err != nil {
		return err
	}
	if p.State != task.PlanHeld && p.State != task.PlanReady {
		return &tasks.PlanStateError{ID: id, State: p.State}
	}
	if err := m.steer(ctx, id, task.PlanReady, m.name); err != nil {
		return err
	}
	return m.note(ctx, ChangeOptions{}, "plan resume", []string{plans.JobName(id)}, nil)
}

// CancelPlan cancels a plan: waiting tasks are cancelled, the workers of running ones are
// told to stop, and nothing can be added or retried. Called again it finishes what was
// cut short. The error matches [task.ErrNoPlan], or [task.ErrPlanState] if the plan was
// over.
func (m *Manager) CancelPlan(ctx context.Context, id task.PlanID, o ChangeOptions) error {
	return m.stopPlan(ctx, id, statemachine.Cancel, o)
}

func (m *Manager) steer(ctx context.Context, id task.PlanID, to task.PlanState, by string) error {
	state, err := retryUntilAvailable(ctx, m, func() (task.PlanState, error) { return m.store.SteerPlan(ctx, id, to, by) })
	if err == nil {
		m.log.Info("steered plan", "plan", id, "state", state)
	}
	return err
}

// maySteer is steer in a dry run.
func (m *Manager) maySteer(ctx context.Context, id task.PlanID, to task.PlanState) error {
	p, err := m.store.Plan(ctx, id)
	if err == nil && p.State != to && !slices.Contains(plans.SteeredFrom(to), p.State) {
		err = &tasks.PlanStateError{ID: id, State: p.State}
	}
	return err
}

// planPage is how many tasks of a plan are looked at in one go.
const planPage = 500

// stopPlan holds or cancels a plan, and then those of its tasks that the event is meant for.
func (m *Manager) stopPlan(ctx context.Context, id task.PlanID, event statemachine.Event, o ChangeOptions) error {
	o, err := m.complete(o)
	if err != nil {
		return err
	}
	return m.Logged(ctx, "plan "+eventVerbs[event], "", o, func(ctx context.Context) error { return m.steerWhole(ctx, id, event, o) })
}

// steerWhole is stopPlan with complete options.
func (m *Manager) steerWhole(ctx context.Context, id task.PlanID, event statemachine.Event, o ChangeOptions) (err error) {
	to, by, why := task.PlanCancelled, "", "its plan was cancelled by "+o.By
	if event == statemachine.Hold {
		to, by, why = task.PlanHeld, holder(o.By, o.Reason), "its plan is held by "+o.By
	}
	if o.DryRun {
		err = m.maySteer(ctx, id, to)
	} else {
		err = m.steer(ctx, id, to, by)
	}
	if err == nil {
		err = m.note(ctx, o, "", []string{plans.JobName(id)}, nil)
	}
	if err != nil {
		return err
	}
	o.Reason = cmp.Or(o.Reason, why)
	return m.eachTask(ctx, id, []string{"state"}, func(ids []int64, found []map[string]string) error {
		var those []int64
		for i, fields := range found {
			state := statemachine.State(fields["state"])
			if state == statemachine.Open || event == statemachine.Cancel && state.Valid() && !state.Terminal() {
				those = append(those, ids[i])
			}
		}
		changes, err := m.change(ctx, event, those, o)
		if err != nil {
			return err
		}
		return failedChanges(changes)
	})
}

// failedChanges are the errors of tasks that were not changed, but for those that
// have gone on to where there is nothing to change.
func failedChanges(changes []Change) error {
	var all []error
	for i := range changes {
		err := changes[i].Err
		if _, moved := errors.AsType[*statemachine.TransitionError](err); err != nil && !moved {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// planPages are the ids of a plan's tasks, a page at a time. New ones come at the end
// only, so that no place slips.
func (m *Manager) planPages(ctx context.Context, plan task.PlanID) iter.Seq2[[]int64, error] {
	return func(yield func([]int64, error) bool) {
		for offset := 0; ; offset += planPage {
			ids, err := retryUntilAvailable(ctx, m, func() ([]int64, error) { return m.store.PlanTasks(ctx, plan, offset, planPage) })
			if err == nil && len(ids) == 0 || !yield(ids, err) || err != nil {
				return
			}
		}
	}
}

func (m *Manager) eachTask(ctx context.Context, plan task.PlanID, names []string, look func([]int64, []map[string]string) error) error {
	for ids, err := range m.planPages(ctx, plan) {
		if err != nil {
			return err
		}
		found, err := m.fields(ctx, ids, names...)
		if err != nil {
			return err
		}
		if err := look(ids, found); err != nil {
			return err
		}
	}
	return nil
}

// fields reads fields of tasks, also after Redis was away for some seconds.
func (m *Manager) fields(ctx context.Context, ids []int64, names ...string) ([]map[string]string, error) {
	return retryUntilAvailable(ctx, m, func() ([]map[string]string, error) { return m.store.Fields(ctx, ids, names...) })
}

// resultPage is how many results are read in one call.
const resultPage = 100

// Results reads the results of tasks, in the order of the ids.
func (m *Manager) Results(ctx context.Context, ids []int64) ([]task.Result, error) {
	results := make([]task.Result, 0, len(ids))
	for page := range slices.Chunk(ids, resultPage) {
		found, err := retryUntilAvailable(ctx, m, func() ([]task.Result, error) { return m.store.Results(ctx, page) })
		if err != nil {
			return results, err
		}
		results = append(results, found...)
	}
	return results, nil
}
