package fn

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/manager"
)

// Submit opens a task of its own for a call, in no plan, and returns at once. The error is
// a *[ValueError] if an argument cannot be written as JSON, or that of
// manager.Manager.Submit.
func (f Func0[R]) Submit(ctx context.Context, m *manager.Manager, options ...Option) (*Future[R], error) {
	return submitted[R](ctx, m, f.begin(), f.options, options)
}

// Do calls the function on some worker and waits for its result: Submit and then
// [Future.Get].
func (f Func0[R]) Do(ctx context.Context, m *manager.Manager, options ...Option) (R, error) {
	future, err := f.Submit(ctx, m, options...)
	return got(ctx, future, err)
}

// Submit opens a task of its own for a call; see [Func0.Submit].
func (f Func[A, R]) Submit(ctx context.Context, m *manager.Manager, a A, options ...Option) (*Future[R], error) {
	call := f.begin()
	pass(call, Value(a))
	return submitted[R](ctx, m, call, f.options, options)
}

// Do calls the function and waits for its result; see [Func0.Do].
func (f Func[A, R]) Do(ctx context.Context, m *manager.Manager, a A, options ...Option) (R, error) {
	future, err := f.Submit(ctx, m, a, options...)
	return got(ctx, future, err)
}

// Submit opens a task of its own for a call; see [Func0.Submit].
func (f Func2[A, B, R]) Submit(ctx context.Context, m *manager.Manager, a A, b B, options ...Option) (*Future[R], error) {
	call := f.begin()
	pass(call, Value(a))
	pass(call, Value(b))
	return submitted[R](ctx, m, call, f.options, options)
}

// Do calls the function and waits for its result; see [Func0.Do].
func (f Func2[A, B, R]) Do(ctx context.Context, m *manager.Manager, a A, b B, options ...Option) (R, error) {
	future, err := f.Submit(ctx, m, a, b, options...)
	return got(ctx, future, err)
}

// Submit opens a task of its own for a call; see [Func0.Submit].
func (f Func3[A, B, C, R]) Submit(ctx context.Context, m *manager.Manager, a A, b B, c C, options ...Option) (*Future[R], error) {
	call := f.begin()
	pass(call, Value(a))
	pass(call, Value(b))
	pass(call, Value(c))
	return submitted[R](ctx, m, call, f.options, options)
}

// Do calls the function and waits for its result; see [Func0.Do].
func (f Func3[A, B, C, R]) Do(ctx context.Context, m *manager.Manager, a A, b B, c C, options ...Option) (R, error) {
	future, err := f.Submit(ctx, m, a, b, c, options...)
	return got(ctx, future, err)
}

// submitted opens the task of a call with all its arguments.
func submitted[R any](ctx context.Context, m *manager.Manager, c *call, ofAll, ofThis []Option) (*Future[R], error) {
	spec := c.complete(slices.Concat(ofAll, ofThis))
	switch {
	case c.err != nil:
		return nil, c.err
	case len(c.after) > 0:
		return nil, fmt.Errorf("function %s: After is for calls of a plan", c.function)
	}
	opened, err := m.Submit(ctx, spec)
	if err != nil {
		return nil, err
	}
	return Attach[R](m, opened.ID), nil
}

// got waits for the result of a call that was submitted, or was not.
func got[R any](ctx context.Context, of *Future[R], err error) (value R, _ error) {
	if err != nil {
		return value, err
	}
	return of.Get(ctx)
}
