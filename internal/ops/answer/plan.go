package answer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/ops/planview"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan/file"
	"github.com/tdf-go/tdf/task"
)

// PlanFile is a plan file with the tasks that it means.
type PlanFile struct {
	*file.Plan

	Tasks []task.Spec
	Later []manager.LaterStep
}

// ReadPlan reads and checks a plan file, but for what only Redis knows. path is for errors, params are the values of its parameters, and
// now is for times such as +10m. The error is a [file.Errors].
func ReadPlan(path string, data []byte, params map[string]string, now time.Time) (*PlanFile, error) {
	read, err := file.Read(path, data, params)
	if err != nil {
		return nil, err
	}
	p := &PlanFile{Plan: read}
	return p, p.Define(now)
}

// Define makes the tasks, once more if what they take along is known since.
func (p *PlanFile) Define(now time.Time) (err error) {
	p.Tasks, p.Later, err = p.Specs(now)
	return err
}

// All are the tasks, those of later steps too.
func (p *PlanFile) All() []task.Spec {
	specs := slices.Clone(p.Tasks)
	for i := range p.Later {
		specs = append(specs, p.Later[i].Specs...)
	}
	return specs
}

// Open makes the plan and lets it run; nothing of it runs before all of it is made. The same under the same key makes nothing twice, and
// goes on where it was cut off. An error with an id is about a plan that was not made to its end; if it matches [task.ErrRequestKey],
// the key was used for that plan, which has other tasks.
func (p *PlanFile) Open(ctx context.Context, m *manager.Manager, key string) (id task.PlanID, opened []task.Opened, err error) {
	id, err = m.NewPlan(ctx, task.PlanSpec{
		Name: p.Name, OnFailure: task.OnFailure(p.OnFailure), RequestKey: key, Contents: manager.Digest(p.Tasks, p.Later),
	})
	if err != nil {
		return id, nil, err
	}
	opened, err = m.SubmitAll(ctx, slices.Values(p.Tasks), manager.InPlan(id), manager.WithRequestKey("plan "+key))
	if err == nil && len(p.Later) > 0 {
		err = m.SubmitLater(ctx, id, p.byStep(opened), p.Later)
	}
	if err == nil {
		err = m.ReadyPlan(ctx, id)
	}
	if broken, ok := errors.AsType[*manager.SubmissionError](err); ok {
		err = broken.Err
	}
	return id, opened, err
}

// byStep are the ids of the tasks that were opened, by the names of their steps.
func (p *PlanFile) byStep(opened []task.Opened) map[string][]int64 {
	ids := map[string][]int64{}
	for i, o := range opened {
		step := planview.StepName(p.Tasks[i].Step)
		ids[step] = append(ids[step], o.ID)
	}
	return ids
}

// PlanSubmitted is a plan that was made from a file.
type PlanSubmitted struct {
	Plan   task.PlanID `json:"plan"`
	Tasks  int         `json:"tasks"` // without those of later steps
	DryRun bool        `json:"dry_run,omitempty"`
}

// SteeredPlan is a plan after do took it to another state.
func SteeredPlan(ctx context.Context, m *manager.Manager, id task.PlanID, do func(context.Context, task.PlanID) error) (*task.Plan, error) {
	if err := do(ctx, id); err != nil {
		return nil, err
	}
	return m.Plan(ctx, id)
}
