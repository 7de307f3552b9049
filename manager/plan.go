package manager

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
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
	id, err := retryUntilAvailable(ctx, m, func() (int64, error) { return m.store.NewPlan(ctx, s) })
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

// When says which end of a task is enough for one that needs it.
type When string

// Which ends are enough.
const (
	// NeedsSuccess waits for the result; the default.
	NeedsSuccess = When(store.NeedsSuccess)
	// NeedsAny waits for the end, whatever it is.
	NeedsAny = When(store.NeedsAny)
	// NeedsFailure waits for any end but success; if it succeeds, the dependant is skipped.
	NeedsFailure = When(store.NeedsFailure)
)

// Need is a task that another one waits for, and whose result it gets as an
// argument (zk-plan: prov and dep).
type Need struct {
	// Task is its id; 0 if it is one before in the same submission: then Index is its
	// place there, from 0.
	Task  int64
	Index int
	// On is when it is enough; empty for NeedsSuccess.
	On When
}

// Values of Spec.Args.
const (
	ArgsWords = store.ArgsWords // results come as words after those of the input, and as files; the default
	ArgsFiles = store.ArgsFiles // results come as files only
)

// InPlan adds the tasks to a plan, in calls of at most 100 tasks or 100 needs.
// What the spec of a task and its queue leave open is as plans have it
// (max_fails 5, retry_delay 100 ms, growing by 1.5 up to 10 s), whatever
// [task_defaults] says of these four. The error may match [ErrNoPlan] or
// [ErrPlanState], or be a *[NeedError].
func InPlan(id int64) OpenOption {
	return func(s *submission) { s.plan, s.size = id, min(s.size, store.PlanTasks) }
}

// planDefaults are the defaults of tasks in plans (zk-plan: the backoff of workers).
func planDefaults(c config.TaskDefaults) config.TaskDefaults {
	c.MaxFails, c.RetryDelay, c.RetryBackoff, c.RetryMaxDelay = "5", "0.1", "1.5", "10"
	return c
}

// resolve puts ids for what was opened before in the same submission.
func (s *submission) resolve(needs []Need) []store.Need {
	if len(needs) == 0 {
		return nil
	}
	resolved := make([]store.Need, 0, len(needs))
	for _, n := range needs {
		r := store.Need{Task: n.Task, On: store.When(n.On)}
		switch {
		case n.Task != 0:
		case n.Index >= 0 && n.Index < len(s.opened):
			r.Task = s.opened[n.Index].ID
		default:
			r.Index = n.Index - len(s.opened)
		}
		resolved = append(resolved, r)
	}
	return resolved
}

// full reports whether a batch with so many needs takes no task with more.
func (s *submission) full(more int) bool {
	return len(s.batch) > 0 && (len(s.batch) >= s.size || s.needs+more > store.PlanNeeds)
}

// needsOf reads what the record of a task says that it needs.
func needsOf(text string) []Need {
	found := store.ParseNeeds(text)
	if len(found) == 0 {
		return nil
	}
	needs := make([]Need, 0, len(found))
	for _, n := range found {
		needs = append(needs, Need{Task: n.Task, On: When(n.On)})
	}
	return needs
}

// ReadyPlan lets the tasks of a plan run; more may be added later. One that was
// ready before stays as it is, also if it is held (see [Manager.ResumePlan]) or
// over: a program that begins again may call it again. A plan without tasks is
// completed at once. The error matches [ErrNoPlan], or [ErrPlanState] if it was
// cancelled.
func (m *Manager) ReadyPlan(ctx context.Context, id int64) error {
	p, err := retryUntilAvailable(ctx, m, func() (*store.Plan, error) { return m.store.Plan(ctx, id) })
	if err != nil || p.State == store.PlanHeld {
		return err
	}
	return m.steer(ctx, id, store.PlanReady, "")
}

// HoldPlan lets nothing more of a ready plan start, until [Manager.ResumePlan]:
// its open tasks are put aside, those that run go on. Called again it puts aside
// what has been opened again meanwhile. The error matches [ErrNoPlan] or
// [ErrPlanState]; the reason, a line of text or empty, is recorded.
func (m *Manager) HoldPlan(ctx context.Context, id int64, reason string, opts ...ChangeOption) error {
	c, err := m.changing(opts)
	if err != nil {
		return err
	}
	if err := checkLine("reason", reason); err != nil {
		return err
	}
	if err := m.steer(ctx, id, store.PlanHeld, holder(c.by, reason)); err != nil {
		return err
	}
	return m.changePlan(ctx, id, statemachine.Hold, orText(reason, "its plan is held by "+c.by), opts)
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
// failed goes on waiting until that is retried. The error matches [ErrNoPlan], or
// [ErrPlanState] if the plan is neither held nor ready.
func (m *Manager) ResumePlan(ctx context.Context, id int64) error {
	p, err := retryUntilAvailable(ctx, m, func() (*store.Plan, error) { return m.store.Plan(ctx, id) })
	if err != nil {
		return err
	}
	if p.State != store.PlanHeld && p.State != store.PlanReady {
		return &store.PlanStateError{ID: id, State: p.State}
	}
	return m.steer(ctx, id, store.PlanReady, "")
}

// CancelPlan calls a plan off: whatever waits is cancelled, the workers of what
// runs are told to stop, and nothing can be added or retried. Called again it
// finishes what was cut short. The error matches [ErrNoPlan], or [ErrPlanState]
// if the plan was over; the reason, a line of text or empty, is recorded with
// the tasks.
func (m *Manager) CancelPlan(ctx context.Context, id int64, reason string, opts ...ChangeOption) error {
	c, err := m.changing(opts)
	if err != nil {
		return err
	}
	if err := checkLine("reason", reason); err != nil {
		return err
	}
	if err := m.steer(ctx, id, store.PlanCancelled, ""); err != nil {
		return err
	}
	return m.changePlan(ctx, id, statemachine.Cancel, orText(reason, "its plan was cancelled by "+c.by), opts)
}

func (m *Manager) steer(ctx context.Context, id int64, to store.PlanState, by string) error {
	state, err := retryUntilAvailable(ctx, m, func() (store.PlanState, error) { return m.store.SteerPlan(ctx, id, to, by) })
	if err == nil {
		m.log.Info("steered plan", "plan", id, "state", state)
	}
	return err
}

// planPage is how many tasks of a plan are looked at in one go.
const planPage = 500

// changePlan brings an event about for the tasks of a plan that it is meant for.
func (m *Manager) changePlan(ctx context.Context, id int64, event statemachine.Event, reason string, opts []ChangeOption) error {
	return m.eachTask(ctx, id, []string{"state"}, func(ids []int64, found []map[string]string) error {
		var those []int64
		for i, fields := range found {
			state := statemachine.State(fields["state"])
			if state == statemachine.Open || event == statemachine.Cancel && state.Valid() && !state.Settled() {
				those = append(those, ids[i])
			}
		}
		changes, err := m.change(ctx, event, those, reason, opts)
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

// eachTask reads fields of the tasks of a plan, page by page.
func (m *Manager) eachTask(ctx context.Context, plan int64, names []string, look func([]int64, []map[string]string) error) error {
	for offset := 0; ; offset += planPage {
		ids, err := retryUntilAvailable(ctx, m, func() ([]int64, error) { return m.store.PlanTasks(ctx, plan, offset, planPage) })
		if err != nil || len(ids) == 0 {
			return err
		}
		found, err := retryUntilAvailable(ctx, m, func() ([]map[string]string, error) { return m.store.Fields(ctx, ids, names...) })
		if err != nil {
			return err
		}
		if err := look(ids, found); err != nil {
			return err
		}
	}
}

// Result is what a task has brought: the argument of those that need it.
type Result struct {
	// Task is its id: that of the last retry that has ended, or succeeded if one has.
	Task int64
	// End is how it ended; empty if it has not.
	End statemachine.State
	// Text is what the program wrote as result= to $TDF_CONTROL, or else its output
	// without the newline at the end.
	Text string
	// Cut says that the output was cut, so that Text is not all of it and no argument.
	Cut bool
}

// resultPage is how many results are read in one call.
const resultPage = 100

// Results reads the results of tasks, in the order of the ids.
func (m *Manager) Results(ctx context.Context, ids ...int64) ([]Result, error) {
	results := make([]Result, 0, len(ids))
	for page := range slices.Chunk(ids, resultPage) {
		found, err := retryUntilAvailable(ctx, m, func() ([]store.Result, error) { return m.store.Results(ctx, page) })
		if err != nil {
			return results, err
		}
		for i := range found {
			results = append(results, Result(found[i]))
		}
	}
	return results, nil
}
