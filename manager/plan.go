package manager

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// PlanState is the state of a plan.
type PlanState string

// The states of a plan.
const (
	PlanBuilding  = PlanState(store.PlanBuilding)  // nothing of it runs yet
	PlanReady     = PlanState(store.PlanReady)     // its tasks run
	PlanHeld      = PlanState(store.PlanHeld)      // nothing more of it is opened
	PlanCompleted = PlanState(store.PlanCompleted) // all of it has ended, and nothing has failed
	PlanFailed    = PlanState(store.PlanFailed)    // all of it has ended, and something has failed
	PlanCancelled = PlanState(store.PlanCancelled) // it was called off
)

// Over reports whether nothing more of such a plan is going to start.
func (st PlanState) Over() bool { return store.PlanState(st).Over() }

// OnFailure says what becomes of the tasks that need one which failed.
type OnFailure string

// What a plan does on a failure.
const (
	FailureCancels   = OnFailure(store.FailureCancels)   // they are cancelled, and what does not need it goes on; the default
	FailureHolds     = OnFailure(store.FailureHolds)     // the plan holds until the task is retried, or the plan is resumed
	FailureContinues = OnFailure(store.FailureContinues) // they run all the same
)

// PlanSpec defines a plan.
type PlanSpec struct {
	// Name is for people, at most 256 bytes in one line.
	Name string
	// OnFailure is FailureCancels if empty.
	OnFailure OnFailure
	// RequestKey names the request for 24 hours: given again, it returns the id of
	// the first time. Without it one is made up, which covers replies lost on the way.
	RequestKey string
	// Contents says what the plan is made of, where that is known (see [Digest]): the
	// RequestKey given again for other contents, another name or OnFailure is refused.
	Contents string
}

// Plan is a plan as it was when it was read: a named set of tasks that need one
// another's results (zk-plan: plan).
type Plan struct {
	ID        int64
	Name      string
	State     PlanState
	OnFailure OnFailure
	// HeldBy is why the plan holds: the id of the task that failed, or who has held it.
	HeldBy string
	// Total is how many tasks it has, those that were retried not counted; Left is how many
	// of them have not ended. Skipped are those that were not to run, because what they
	// wait for did not come to fail; Ended says how the others ended.
	Total, Left, Skipped int64
	Ended                map[statemachine.State]int64
	// Growing is how many of its steps are opened by servers once the lines of a result are known (see [LaterStep]), and
	// GrowthError why some of these cannot be.
	Growing     int64
	GrowthError string
	// Created, Ready and Over are when it was made, when it was marked ready last, and
	// when all of it had ended; zero for not yet.
	Created, Ready, Over time.Time
}

// NewPlan makes a plan and returns its id. Tasks are added by [InPlan]; nothing
// of it runs before [Manager.ReadyPlan]. A spec that cannot be is a
// *statemachine.FieldError. The error matches [ErrRequestKey], and comes with the id of that
// plan, if the RequestKey was used for another one. Package plan is the comfortable way to build one.
func (m *Manager) NewPlan(ctx context.Context, spec PlanSpec) (int64, error) {
	if err := checkLine("name", spec.Name); err != nil {
		return 0, err
	}
	s := store.PlanSpec{
		Key: orText(spec.RequestKey, store.NewToken()), Name: spec.Name,
		OnFailure: store.OnFailure(spec.OnFailure), Digest: spec.Contents,
	}
	id, err := patiently(ctx, m, func() (int64, error) { return m.store.NewPlan(ctx, s) })
	if err == nil {
		m.log.Info("made plan", "plan", id, "name", spec.Name)
	}
	return id, err
}

// Plan reads a plan. The error matches [ErrNoPlan] if there is none with that id.
func (m *Manager) Plan(ctx context.Context, id int64) (*Plan, error) {
	p, err := m.store.Plan(ctx, id)
	if err != nil {
		return nil, err
	}
	return newPlan(p), nil
}

// Plans reads plans, the newest first, from the given place on, at most limit.
func (m *Manager) Plans(ctx context.Context, offset, limit int) ([]Plan, error) {
	found, err := m.store.Plans(ctx, offset, limit)
	plans := make([]Plan, len(found))
	for i := range found {
		plans[i] = *newPlan(&found[i])
	}
	return plans, err
}

// PlanTasks lists the ids of the tasks of a plan in the order in which they were
// added, those that were retried and their retries included, from the given
// place on, at most limit.
func (m *Manager) PlanTasks(ctx context.Context, id int64, offset, limit int) ([]int64, error) {
	return m.store.PlanTasks(ctx, id, offset, limit)
}

func newPlan(p *store.Plan) *Plan {
	return &Plan{
		ID: p.ID, Name: p.Name, State: PlanState(p.State), OnFailure: OnFailure(p.OnFailure), HeldBy: p.HeldBy,
		Total: p.Total, Left: p.Left, Skipped: p.Skipped, Ended: p.Ended,
		Growing: p.Growing, GrowthError: p.GrowthError,
		Created: momentOf(p.Created), Ready: momentOf(p.Ready), Over: momentOf(p.Over),
	}
}
