package plan

import (
	"context"
	"fmt"
	"sync"

	"github.com/tdf-go/tdf/manager"
)

// Status is a plan as it was when it was read.
type Status = manager.Plan

// Plan is a plan to which this program adds tasks. It is safe for use by many
// goroutines, but the order in which tasks are added is the order of the calls.
type Plan struct {
	m   *manager.Manager
	id  int64
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
	spec  manager.Spec
	deps  []dependency
	id    int64 // 0 before it was sent; guarded by plan.mu
}

// dependency is a need, of a task in the hands of this program unless of is nil.
type dependency struct {
	need manager.Need
	of   *Task
}

// New makes a plan of that name, which is for people. See [manager.Manager.NewPlan]
// for the errors.
func New(ctx context.Context, m *manager.Manager, name string, opts ...Option) (*Plan, error) {
	o := newOptions(opts)
	id, err := m.NewPlan(ctx, manager.PlanSpec{Name: name, OnFailure: o.onFailure, RequestKey: o.key})
	if err != nil {
		return nil, fmt.Errorf("plan %q: %w", name, err)
	}
	return &Plan{m: m, id: id, key: o.key}, nil
}

// Open opens a plan that is there, to add to it or to wait for it. The error
// matches [manager.ErrNoPlan].
func Open(ctx context.Context, m *manager.Manager, id int64, opts ...Option) (*Plan, error) {
	if _, err := m.Plan(ctx, id); err != nil {
		return nil, err
	}
	return &Plan{m: m, id: id, key: newOptions(opts).key}, nil
}

// ID is the id of the plan.
func (p *Plan) ID() int64 { return p.id }

// Add adds a task that needs others, and gets their results in that order; a task
// named twice comes twice. The task is in memory until [Plan.Send]; what is wrong
// with it Send says. spec.Needs must be empty.
func (p *Plan) Add(spec manager.Spec, deps ...Dep) *Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &Task{plan: p, index: p.added, spec: spec}
	p.added++
	p.pending = append(p.pending, t)
	if len(spec.Needs) > 0 {
		p.refuse(t, 0, "it stands in Needs of the spec; give it to Add")
	}
	for place, dep := range deps {
		if dep == nil {
			p.refuse(t, place, "it is nil")
			continue
		}
		d, wrong := dep.need(p)
		if wrong != "" {
			p.refuse(t, place, wrong)
		}
		t.deps = append(t.deps, d)
	}
	return t
}

// Refuse is [Plan.Add] for a task that cannot be, which is said by Send and Ready, as
// a *[TaskError] with err. It is for packages that make specs, such as plan/fn.
func (p *Plan) Refuse(spec manager.Spec, err error) *Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &Task{plan: p, index: p.added, spec: spec}
	p.added++
	if p.wrong == nil {
		p.wrong = &TaskError{Index: t.index, Program: spec.Program, Err: err}
	}
	return t
}

// refuse notes what is wrong, the first time.
func (p *Plan) refuse(t *Task, place int, reason string) {
	if p.wrong == nil {
		p.wrong = &DependencyError{Index: t.index, Program: t.spec.Program, Place: place, Reason: reason}
	}
}

// ID is the id of the task; 0 before it was sent.
func (t *Task) ID() int64 {
	t.plan.mu.Lock()
	defer t.plan.mu.Unlock()
	return t.id
}
