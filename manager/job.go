package manager

import (
	"context"
	"errors"

	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// job is the plan that a submission makes of its tasks.
type job struct {
	task.PlanSpec

	made func(task.PlanID)
}

// AsJob makes the tasks of a submission a job: a plan whose tasks need nothing of one another, run as soon as they are opened, and
// cost what tasks of no plan do. With a Window or After, servers open them. AsJob sets Job and RequestKey of spec, and replaces [InPlan].
// made, unless it is nil, gets the number of the job before the first task is opened. If no new task is opened, no job remains. The
// error about a spec is a *statemachine.FieldError; about After it matches [task.ErrNoPlan] if there is no such plan.
//
// A submission that was cut short leaves a job that is still building; repeated with its request key, it finishes it.
func AsJob(spec task.PlanSpec, made func(task.PlanID)) SubmitOption {
	spec.Job = true // here: the option may be used by many at a time
	return func(s *submission) {
		s.plan, s.job = 0, &job{PlanSpec: spec, made: made}
		if plans.Gated(&spec) {
			s.size = min(s.size, plans.PlanTasks)
		}
	}
}

// makeJob makes the job before the first batch is sent: what cannot be opened makes none.
func (s *submission) makeJob(ctx context.Context) error {
	for _, need := range s.job.After {
		if _, err := s.m.Plan(ctx, need.Plan); err != nil {
			return err
		}
	}
	s.job.RequestKey = "submit " + s.key
	var err error
	if s.plan, err = s.m.NewPlan(ctx, s.job.PlanSpec); err != nil {
		return err
	}
	if s.job.made != nil {
		s.job.made(s.plan)
	}
	return nil
}

// endJob says that all tasks of the job were opened. One without tasks goes; that of a repeated submission may have gone. After an
// error, one with tasks waits to be finished.
func (s *submission) endJob(ctx context.Context, err error) error {
	if s.plan == 0 {
		return err
	}
	if err != nil {
		if p, missing := s.m.Plan(ctx, s.plan); missing != nil || p.Total > 0 {
			return err
		}
	}
	ready := s.m.ReadyPlan(ctx, s.plan)
	if err != nil || errors.Is(ready, task.ErrNoPlan) {
		return err
	}
	return ready
}

// Underway counts, for each plan, the tasks that run, or have run and were not settled yet. It reads all of these: about as many as
// there are slots.
func (m *Manager) Underway(ctx context.Context) (map[task.PlanID]int64, error) {
	n := map[task.PlanID]int64{}
	states := []statemachine.State{statemachine.Running, statemachine.Executed}
	for t, err := range m.Select(ctx, Selection{All: true, States: states, Fields: []string{planField}}) {
		if err != nil {
			return nil, err
		}
		n[t.Plan]++
	}
	return n, nil
}
