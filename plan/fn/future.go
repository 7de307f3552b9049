package fn

import (
	"context"

	"github.com/tdf-go/tdf/plan"
)

// Future is the result, of type R, of a task of a plan: an argument for calls, and
// something that other tasks of the plan can need (see [plan.Plan.Add]; a program gets
// it as JSON). Its value is there when the task has succeeded.
type Future[R any] struct {
	handle

	plan *plan.Plan
	text bool // it is an output, and no JSON
}

// handle is what a future is a need by.
type handle = plan.Dep

// Output is the result of a program, as a value of type R: a string or []byte is what
// the program has written, without the newline at the end, anything else is JSON,
// so that a number is a number.
func Output[R any](p *plan.Plan, of plan.Dep) *Future[R] {
	return &Future[R]{handle: of, plan: p, text: true}
}

// Result is the result of a function that is called elsewhere, of which only the id is
// known: Result[int](p, plan.ID(12)).
func Result[R any](p *plan.Plan, of plan.Dep) *Future[R] {
	return &Future[R]{handle: of, plan: p}
}

// ID is the id of the task; 0 before it was sent.
func (f *Future[R]) ID() int64 {
	switch of := f.handle.(type) {
	case *plan.Task:
		return of.ID()
	case plan.ID:
		return int64(of)
	case interface{ ID() int64 }: // the future of something else
		return of.ID()
	default:
		return 0
	}
}

// Get reads the value, which is there once the task has succeeded: it does not wait,
// [plan.Plan.Wait] does. If the task was retried, the value is that of the retry. The
// error matches plan.ErrNotSent, is a *plan.ResultError that says why there is none,
// or a *[ValueError] if it is no R.
func (f *Future[R]) Get(ctx context.Context) (value R, err error) {
	text, err := f.plan.Result(ctx, f.handle)
	if err != nil {
		return value, err
	}
	if err := decode(text, f.text, &value); err != nil {
		var none R
		return none, &ValueError{Task: f.ID(), Err: err}
	}
	return value, nil
}

func (f *Future[R]) bind(c *call) word[R] {
	n := c.need(f)
	return word[R](run{ref{n, f != nil && f.text}, n}.String())
}

// dep is nil, which the plan refuses, for a future that is.
func (f *Future[R]) dep() plan.Dep {
	if f == nil {
		return nil
	}
	return f.handle
}
