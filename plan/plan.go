package plan

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Plan is a plan to which this program adds tasks. It is safe for use by many
// goroutines, but the order in which tasks are added is the order of the calls.
type Plan struct {
	m   *manager.Manager
	id  task.PlanID
	key string

	mu      sync.Mutex // guards what follows
	added   int
	pending []*Task
	batch   []*Task // a portion under way: sent again as it is until it is through
	sent    int     // tasks in the portions before
	wrong   error   // of the first Add that cannot be
}

// Task is a task of a plan, sent or not.
type Task struct {
	plan  *Plan
	index int // how many were added before
	spec  task.Spec
	deps  []dependency
	id    int64 // 0 before it was sent; guarded by plan.mu
}

// dependency is a need, of a task in the hands of this program unless of is nil.
type dependency struct {
	need task.Need
	of   *Task
}

// New makes a plan of that name, which is for people. See [manager.Manager.NewPlan]
// for the errors.
func New(ctx context.Context, m *manager.Manager, name string, opts ...Option) (*Plan, error) {
	o := newOptions(opts)
	id, err := m.NewPlan(ctx, task.PlanSpec{Name: name, OnFailure: o.onFailure, RequestKey: o.key})
	if err != nil {
		return nil, fmt.Errorf("plan %q: %w", name, err)
	}
	return &Plan{m: m, id: id, key: o.key}, nil
}

// Load finds the plan with that id, to add to it or to wait for it. The error
// matches [task.ErrNoPlan], or is a *statemachine.FieldError about [OnFailure], which
// only [New] takes.
func Load(ctx context.Context, m *manager.Manager, id task.PlanID, opts ...Option) (*Plan, error) {
	o := newOptions(opts)
	if o.onFailure != "" {
		return nil, &statemachine.FieldError{
			Field: "on_failure", Value: string(o.onFailure), Want: "for Load: a plan keeps what New was given; leave it out",
		}
	}
	if _, err := m.Plan(ctx, id); err != nil {
		return nil, err
	}
	return &Plan{m: m, id: id, key: o.key}, nil
}

// ID is the id of the plan.
func (p *Plan) ID() task.PlanID { return p.id }

// Add adds a task that needs others, and gets their results in that order; a task
// named twice comes twice. The task stays in memory until [Plan.Send], which
// reports what is wrong with it. spec.Needs must be empty.
func (p *Plan) Add(spec task.Spec, deps ...Dep) *Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.newTask(spec)
	p.pending = append(p.pending, t)
	if len(spec.Needs) > 0 {
		p.refuse(t, 1, fmt.Errorf("it stands in Needs of the spec; give it to Add: %w", ErrForeign))
	}
	for place, dep := range deps {
		d, wrong := needOf(dep, p)
		if wrong != "" {
			p.refuse(t, place+1, fmt.Errorf("%s: %w", wrong, ErrForeign))
		}
		t.deps = append(t.deps, d)
	}
	return t
}

// Refuse is [Plan.Add] for a task that is not valid: Send and Ready return a
// *[TaskError] with err. It is for packages that make specs, such as fn.
func (p *Plan) Refuse(spec task.Spec, err error) *Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.newTask(spec)
	p.refuse(t, 0, err)
	return t
}

func (p *Plan) newTask(spec task.Spec) *Task {
	p.added++
	return &Task{plan: p, index: p.added - 1, spec: spec}
}

// refuse notes what is wrong, the first time.
func (p *Plan) refuse(t *Task, place int, err error) {
	if p.wrong == nil {
		p.wrong = &TaskError{Index: t.index, Program: t.spec.Program, Place: place, Err: err}
	}
}

// ID is the id of the task; 0 before it was sent.
func (t *Task) ID() int64 {
	t.plan.mu.Lock()
	defer t.plan.mu.Unlock()
	return t.id
}

// Option changes how a plan is made or opened.
type Option func(*options)

type options struct {
	onFailure task.OnFailure
	key       string
}

// OnFailure says what the plan does when a task fails and is not retried. By default
// the tasks that need it are cancelled. [Load] refuses this option.
func OnFailure(do task.OnFailure) Option {
	return func(o *options) { o.onFailure = do }
}

// WithRequestKey names what this program builds, for 24 hours: given again, with
// the same tasks sent in the same portions, the plan and its tasks are those of
// the first time. A task that adds to its own plan uses a key with its own id in
// it, because it may be run more than once.
func WithRequestKey(key string) Option {
	return func(o *options) { o.key = key }
}

func newOptions(opts []Option) options {
	o := options{key: rand.Text()}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Dep is something that a task needs: a *[Task], an [ID], or one of them in [Any]
// or [Failure]. A task on its own must succeed.
type Dep interface {
	// need is what a task of p needs then; wrong says why it cannot, empty if it can.
	need(p *Plan) (d dependency, wrong string)
}

const isNil = "it is nil; give the answer of Add, or the id of a task"

func needOf(dep Dep, p *Plan) (dependency, string) {
	if dep == nil {
		return dependency{}, isNil
	}
	return dep.need(p)
}

// ID is a task of the plan that was sent elsewhere, by its id.
type ID int64

func (id ID) need(*Plan) (dependency, string) {
	if id <= 0 {
		return dependency{}, fmt.Sprintf("%d is not the id of a task", int64(id))
	}
	return dependency{need: task.Need{Task: int64(id), On: task.NeedsSuccess}}, ""
}

func (t *Task) need(p *Plan) (dependency, string) {
	switch {
	case t == nil:
		return dependency{}, isNil
	case t.plan != p:
		return dependency{}, fmt.Sprintf("it is a handle of plan %d", t.plan.id)
	}
	return dependency{task.Need{On: task.NeedsSuccess}, t}, ""
}

// edge is a dependency that is met by other ends.
type edge struct {
	dep Dep
	on  task.When
}

func (e edge) need(p *Plan) (dependency, string) {
	d, wrong := needOf(e.dep, p)
	d.need.On = e.on
	return d, wrong
}

// Any waits for the end of a task, whatever it is. Where it did not succeed, its
// result is empty.
func Any(dep Dep) Dep { return edge{dep, task.NeedsAny} }

// Failure waits for a task to end without success. If it succeeds, what needs its
// failure is skipped, which is no failure of the plan.
func Failure(dep Dep) Dep { return edge{dep, task.NeedsFailure} }

// Send adds to the plan what [Plan.Add] has gathered. After an error nothing is
// lost: called again, it continues where it stopped. A *[TaskError] is final:
// nothing more is ever sent. The error matches [task.ErrPlanState] if the plan is
// over.
func (p *Plan) Send(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrong != nil {
		return p.wrong
	}
	for {
		if len(p.batch) == 0 {
			p.batch, p.pending = p.pending, nil
		}
		if len(p.batch) == 0 {
			return nil
		}
		if err := p.send(ctx); err != nil {
			return err
		}
		p.sent += len(p.batch)
		p.batch = nil
	}
}

// send sends the portion under way. Its key is made from its place, so that the
// same program makes the same requests when it begins again.
func (p *Plan) send(ctx context.Context) error {
	key := fmt.Sprintf("%s:%d:%d", p.key, p.id, p.sent)
	opened, err := p.m.SubmitAll(ctx, p.specs(), manager.InPlan(p.id), manager.WithRequestKey(key))
	for i, o := range opened {
		p.batch[i].id = o.ID
	}
	return p.blame(err)
}

// specs are the tasks of the portion under way.
func (p *Plan) specs() iter.Seq[task.Spec] {
	return func(yield func(task.Spec) bool) {
		for _, t := range p.batch {
			spec := t.spec
			spec.Needs = make([]task.Need, len(t.deps))
			for i, d := range t.deps {
				spec.Needs[i] = d.within(p.sent)
			}
			if !yield(spec) {
				return
			}
		}
	}
}

// within is the need as the portion spells it that begins after the first tasks.
func (d dependency) within(first int) task.Need {
	need := d.need
	switch {
	case d.of == nil:
	case d.of.index >= first:
		need.Index = d.of.index - first
	default:
		need.Task = d.of.id
	}
	return need
}

// blame names the task of the plan that an error is about.
func (p *Plan) blame(err error) error {
	index := -1
	if one, ok := errors.AsType[*manager.SpecError](err); ok {
		index, err = one.Index, one.Err
	} else if need, ok := errors.AsType[*manager.NeedError](err); ok {
		sub, _ := errors.AsType[*manager.SubmissionError](err)
		index, err = sub.Opened+need.Index, need
	}
	if index < 0 || index >= len(p.batch) {
		return err
	}
	return &TaskError{Index: p.sent + index, Program: p.batch[index].spec.Program, Err: err}
}

// Ready sends what was added and lets the plan run. A plan without tasks is
// completed at once. See [manager.Manager.ReadyPlan].
func (p *Plan) Ready(ctx context.Context) error {
	if err := p.Send(ctx); err != nil {
		return err
	}
	return p.m.ReadyPlan(ctx, p.id)
}

// Status reads the plan: its State is task.PlanCompleted if all of it was done. It is
// nil with an error.
func (p *Plan) Status(ctx context.Context) (*task.Plan, error) { return p.m.Plan(ctx, p.id) }

// Wait waits until all tasks of the plan have ended, also while the plan is held, and
// returns the plan, whose State says how it ended. If ctx ends first, the error matches
// that of ctx and [ErrNotOver], and comes with the plan as it was read last.
func (p *Plan) Wait(ctx context.Context) (*task.Plan, error) {
	s, err := p.m.WaitPlan(ctx, p.id, nil)
	if s == nil {
		s = &task.Plan{ID: p.id}
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrNotOver, err)
	}
	return s, err
}

// Cancel cancels the plan; see [manager.Manager.CancelPlan].
func (p *Plan) Cancel(ctx context.Context, reason string) error {
	return p.m.CancelPlan(ctx, p.id, manager.ChangeOptions{Reason: reason})
}

// Hold keeps the rest of the plan from starting; see [manager.Manager.HoldPlan].
func (p *Plan) Hold(ctx context.Context, reason string) error {
	return p.m.HoldPlan(ctx, p.id, manager.ChangeOptions{Reason: reason})
}

// Resume lets a held plan go on; see [manager.Manager.ResumePlan].
func (p *Plan) Resume(ctx context.Context) error { return p.m.ResumePlan(ctx, p.id) }

// Retry retries what has not succeeded; see [manager.Manager.RetryPlan].
func (p *Plan) Retry(ctx context.Context) ([]manager.Retried, error) {
	return p.m.RetryPlan(ctx, p.id, manager.ChangeOptions{})
}

// Result returns the result of a task of the plan, or of its last retry. The error
// matches [ErrNotSent] or [ErrForeign], or is a *[ResultError] that says why there
// is none.
func (p *Plan) Result(ctx context.Context, of Dep) (string, error) {
	id, err := p.idOf(of)
	if err != nil {
		return "", err
	}
	return Result(ctx, p.m, id)
}

// Result is [Plan.Result] for any task, in a plan or not, by its id.
func Result(ctx context.Context, m *manager.Manager, id int64) (string, error) {
	found, err := m.Results(ctx, []int64{id})
	if err != nil {
		return "", err
	}
	r := found[0]
	if r.End == statemachine.Succeeded && !r.Cut {
		return r.Text, nil
	}
	none := &ResultError{Task: r.Task, End: r.End, Cut: r.Cut}
	if r.End != statemachine.None && !r.Cut {
		t, err := m.Task(ctx, r.Task)
		if err != nil {
			return "", err
		}
		none.Message = strings.TrimSpace(t.Failure())
		if none.Reasons, err = m.Why(ctx, r.Task); err != nil {
			return "", err
		}
	}
	return "", none
}

// Manager is the manager that the plan was made or opened with.
func (p *Plan) Manager() *manager.Manager { return p.m }

func (p *Plan) idOf(of Dep) (int64, error) {
	d, wrong := needOf(of, p)
	switch {
	case wrong != "":
		return 0, fmt.Errorf("a result for plan %d: %s: %w", p.id, wrong, ErrForeign)
	case d.of == nil:
		return d.need.Task, nil
	}
	if id := d.of.ID(); id != 0 {
		return id, nil
	}
	return 0, fmt.Errorf("task %d of the plan (%s): %w", d.of.index+1, d.of.spec.Program, ErrNotSent)
}
