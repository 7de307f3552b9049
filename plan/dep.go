package plan

import (
	"fmt"

	"github.com/tdf-go/tdf/manager"
)

// Dep is something that a task needs: a *[Task], an [ID], or one of them in [Any]
// or [Failure]. A task on its own must succeed.
type Dep interface {
	// need is what a task of p needs then; wrong says why it cannot, empty if it can.
	need(p *Plan) (d dependency, wrong string)
}

// ID is a task of the plan that was sent elsewhere, by its id.
type ID int64

func (id ID) need(*Plan) (dependency, string) {
	if id <= 0 {
		return dependency{}, fmt.Sprintf("%d is not the id of a task", int64(id))
	}
	return dependency{need: manager.Need{Task: int64(id), On: manager.NeedsSuccess}}, ""
}

func (t *Task) need(p *Plan) (dependency, string) {
	switch {
	case t == nil:
		return dependency{}, "it is nil"
	case t.plan != p:
		return dependency{}, fmt.Sprintf("it is a handle of plan %d", t.plan.id)
	}
	return dependency{manager.Need{On: manager.NeedsSuccess}, t}, ""
}

// edge is a dependency that is met by other ends.
type edge struct {
	dep Dep
	on  manager.When
}

func (e edge) need(p *Plan) (dependency, string) {
	if e.dep == nil {
		return dependency{}, "it is nil"
	}
	d, wrong := e.dep.need(p)
	d.need.On = e.on
	return d, wrong
}

// Any waits for the end of a task, whatever it is. Where it did not succeed, its
// result is empty.
func Any(dep Dep) Dep { return edge{dep, manager.NeedsAny} }

// Failure waits for a task to end in another way than succeeded. If it succeeds,
// what needs its failure is skipped, which is no failure of the plan.
func Failure(dep Dep) Dep { return edge{dep, manager.NeedsFailure} }
