package fn

import (
	"context"
	"slices"

	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/worker"
)

// definition is what all functions have.
type definition struct {
	name    string
	options []Option
}

// Name is the name by which workers know the function.
func (d definition) Name() string { return d.name }

// Func0 is a function without arguments; see [New0].
type Func0[R any] struct {
	definition

	do func(context.Context) (R, error)
}

// New0 defines a function under a name, which is that of a program: 1 to 128 bytes
// without a slash. The options hold for all its calls.
func New0[R any](name string, do func(context.Context) (R, error), options ...Option) Func0[R] {
	return Func0[R]{definition{name, options}, do}
}

// Call adds a call to a plan; what is wrong with it p.Send and p.Ready say, as a
// *plan.TaskError.
func (f Func0[R]) Call(p *plan.Plan, options ...Option) *Future[R] {
	return called[R](f.begin(), p, f.options, options)
}

func (f Func0[R]) serve() worker.Handler {
	if f.do == nil {
		return nil
	}
	return serve(f.name, 0, func(ctx context.Context, _ *input) (R, error) { return f.do(ctx) })
}

// Func1 is a function of one argument; see [New1].
type Func1[A, R any] struct {
	definition

	do func(context.Context, A) (R, error)
}

// New1 is [New0] for one argument.
func New1[A, R any](name string, do func(context.Context, A) (R, error), options ...Option) Func1[A, R] {
	return Func1[A, R]{definition{name, options}, do}
}

// Call adds a call to a plan; see [Func0.Call].
func (f Func1[A, R]) Call(p *plan.Plan, a Arg[A], options ...Option) *Future[R] {
	c := f.begin()
	pass(c, a)
	return called[R](c, p, f.options, options)
}

func (f Func1[A, R]) serve() worker.Handler {
	if f.do == nil {
		return nil
	}
	return serve(f.name, 1, func(ctx context.Context, in *input) (r R, err error) {
		a := take[A](in, 0)
		if in.err != nil {
			return r, in.err
		}
		return f.do(ctx, a)
	})
}

// Func2 is a function of two arguments; see [New2].
type Func2[A, B, R any] struct {
	definition

	do func(context.Context, A, B) (R, error)
}

// New2 is [New0] for two arguments.
func New2[A, B, R any](name string, do func(context.Context, A, B) (R, error), options ...Option) Func2[A, B, R] {
	return Func2[A, B, R]{definition{name, options}, do}
}

// Call adds a call to a plan; see [Func0.Call].
func (f Func2[A, B, R]) Call(p *plan.Plan, a Arg[A], b Arg[B], options ...Option) *Future[R] {
	c := f.begin()
	pass(c, a)
	pass(c, b)
	return called[R](c, p, f.options, options)
}

func (f Func2[A, B, R]) serve() worker.Handler {
	if f.do == nil {
		return nil
	}
	return serve(f.name, 2, func(ctx context.Context, in *input) (r R, err error) {
		a, b := take[A](in, 0), take[B](in, 1)
		if in.err != nil {
			return r, in.err
		}
		return f.do(ctx, a, b)
	})
}

// Func3 is a function of three arguments; see [New3]. One of more takes a struct.
type Func3[A, B, C, R any] struct {
	definition

	do func(context.Context, A, B, C) (R, error)
}

// New3 is [New0] for three arguments.
func New3[A, B, C, R any](name string, do func(context.Context, A, B, C) (R, error), options ...Option) Func3[A, B, C, R] {
	return Func3[A, B, C, R]{definition{name, options}, do}
}

// Call adds a call to a plan; see [Func0.Call].
func (f Func3[A, B, C, R]) Call(p *plan.Plan, a Arg[A], b Arg[B], c Arg[C], options ...Option) *Future[R] {
	call := f.begin()
	pass(call, a)
	pass(call, b)
	pass(call, c)
	return called[R](call, p, f.options, options)
}

func (f Func3[A, B, C, R]) serve() worker.Handler {
	if f.do == nil {
		return nil
	}
	return serve(f.name, 3, func(ctx context.Context, in *input) (r R, err error) {
		a, b, c := take[A](in, 0), take[B](in, 1), take[C](in, 2)
		if in.err != nil {
			return r, in.err
		}
		return f.do(ctx, a, b, c)
	})
}

func (d definition) begin() *call { return &call{function: d.name, words: []string{}} }

// called adds a call with all its arguments to the plan.
func called[R any](c *call, p *plan.Plan, ofAll, ofThis []Option) *Future[R] {
	return &Future[R]{handle: c.add(p, slices.Concat(ofAll, ofThis)...), plan: p}
}
