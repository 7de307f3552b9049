package fn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// definition is what all functions have.
type definition struct {
	name    string
	options []Option
	handler worker.Handler // nil if there is nothing to be called
}

func define[R any](
	name string, options []Option, there bool, takes int, bind func(*input) func(context.Context) (R, error),
) definition {
	d := definition{name: name, options: options}
	if there {
		d.handler = serve(name, takes, bind)
	}
	return d
}

// Name is the name by which workers know the function.
func (d definition) Name() string { return d.name }

func (d definition) serve() worker.Handler { return d.handler }

// Func0 is a function without arguments; see [New0].
type Func0[R any] struct{ definition }

// New0 is [New] for a function without arguments.
func New0[R any](name string, do func(context.Context) (R, error), options ...Option) Func0[R] {
	return Func0[R]{define(name, options, do != nil, 0, func(*input) func(context.Context) (R, error) { return do })}
}

// Call adds a call to a plan; if the call is not valid, p.Send and p.Ready return a
// *plan.TaskError.
func (f Func0[R]) Call(p *plan.Plan, options ...Option) *Future[R] {
	return called[R](f.begin(), p, f.options, options)
}

// Func is a function of one argument; see [New].
type Func[A, R any] struct{ definition }

// New defines a function under a name, which is that of a program and a class: 1 to 128
// bytes without slashes, blanks, commas and equals signs. The options hold for all its calls.
func New[A, R any](name string, do func(context.Context, A) (R, error), options ...Option) Func[A, R] {
	return Func[A, R]{define(name, options, do != nil, 1, func(in *input) func(context.Context) (R, error) {
		a := take[A](in, 0)
		return func(ctx context.Context) (R, error) { return do(ctx, a) }
	})}
}

// Call adds a call to a plan; see [Func0.Call].
func (f Func[A, R]) Call(p *plan.Plan, a Arg[A], options ...Option) *Future[R] {
	c := f.begin()
	pass(c, a)
	return called[R](c, p, f.options, options)
}

// Func2 is a function of two arguments; see [New2].
type Func2[A, B, R any] struct{ definition }

// New2 is [New] for two arguments.
func New2[A, B, R any](name string, do func(context.Context, A, B) (R, error), options ...Option) Func2[A, B, R] {
	return Func2[A, B, R]{define(name, options, do != nil, 2, func(in *input) func(context.Context) (R, error) {
		a, b := take[A](in, 0), take[B](in, 1)
		return func(ctx context.Context) (R, error) { return do(ctx, a, b) }
	})}
}

// Call adds a call to a plan; see [Func0.Call].
func (f Func2[A, B, R]) Call(p *plan.Plan, a Arg[A], b Arg[B], options ...Option) *Future[R] {
	c := f.begin()
	pass(c, a)
	pass(c, b)
	return called[R](c, p, f.options, options)
}

// Func3 is a function of three arguments; see [New3]. A function of more arguments
// takes a struct.
type Func3[A, B, C, R any] struct{ definition }

// New3 is [New] for three arguments.
func New3[A, B, C, R any](name string, do func(context.Context, A, B, C) (R, error), options ...Option) Func3[A, B, C, R] {
	return Func3[A, B, C, R]{define(name, options, do != nil, 3, func(in *input) func(context.Context) (R, error) {
		a, b, c := take[A](in, 0), take[B](in, 1), take[C](in, 2)
		return func(ctx context.Context) (R, error) { return do(ctx, a, b, c) }
	})}
}

// Call adds a call to a plan; see [Func0.Call].
func (f Func3[A, B, C, R]) Call(p *plan.Plan, a Arg[A], b Arg[B], c Arg[C], options ...Option) *Future[R] {
	call := f.begin()
	pass(call, a)
	pass(call, b)
	pass(call, c)
	return called[R](call, p, f.options, options)
}

func (d definition) begin() *call { return &call{function: d.name, words: []string{}} }

// called adds a call with all its arguments to the plan.
func called[R any](c *call, p *plan.Plan, ofAll, ofThis []Option) *Future[R] {
	return &Future[R]{handle: c.add(p, slices.Concat(ofAll, ofThis)...), m: p.Manager(), plan: p}
}

// Option changes calls of a function: all of them if it is given with the function, or
// one.
type Option func(*call)

// WithSpec changes the tasks that calls become: their queue, timeout, max_fails and so
// on. It must not change Program, Class, Input, Argv, Args and Needs, which this
// package sets.
func WithSpec(change func(*task.Spec)) Option {
	return func(c *call) { change(&c.spec) }
}

// After lets a call wait for others whose results are no arguments: a *[Future], a
// *plan.Task, or either in plan.Any or plan.Failure.
func After(others ...plan.Dep) Option {
	return func(c *call) { c.after = append(c.after, others...) }
}

// call is a call on its way into a plan.
type call struct {
	function string
	spec     task.Spec
	words    []string   // the arguments
	needs    []plan.Dep // whose results they are
	after    []plan.Dep
	err      error // why it cannot be
}

func pass[A any](c *call, a Arg[A]) {
	if a == nil {
		c.refuse(errors.New("it is nil"))
		return
	}
	text := a.bind(c)
	c.words = append(c.words, string(text))
}

// need adds the future to what the call needs, and returns its number there.
func (c *call) need(of interface{ dep() plan.Dep }) int {
	c.needs = append(c.needs, of.dep())
	return len(c.needs)
}

// refuse notes what is wrong with the argument that is being passed.
func (c *call) refuse(err error) {
	if c.err == nil {
		c.err = &ValueError{Function: c.function, Argument: len(c.words) + 1, Err: err}
	}
}

// complete is the spec of the task that the call becomes.
func (c *call) complete(options []Option) task.Spec {
	for _, change := range options {
		change(c)
	}
	s := c.spec
	s.Program, s.Class, s.Input, s.Argv, s.Args = c.function, c.function, "", c.words, ""
	return s
}

func (c *call) add(p *plan.Plan, options ...Option) *plan.Task {
	s := c.complete(options)
	s.Args = task.ArgsFiles
	if c.err != nil {
		return p.Refuse(s, c.err)
	}
	return p.Add(s, append(c.needs, c.after...)...)
}

// Arg is an argument of type A for a call: a [Value], the *[Future] of another call, or
// [All] of several.
type Arg[A any] interface {
	// bind adds to the call what the argument needs, and says how it is written there.
	bind(c *call) word[A]
}

// word is an argument as it is written into a task: JSON, or references, which JSON
// never looks like: "$1" is the result of the first need, "$2:text" the output of the
// second, and "[$1..3,$5]" a list of results.
type word[A any] string

// Value is an argument that is known. It is kept in the task, so what is large should
// be the result of a function, which is kept once.
func Value[A any](v A) Arg[A] { return known[A]{v} }

type known[A any] struct{ value A }

func (k known[A]) bind(c *call) word[A] {
	text, err := encode(k.value)
	if err != nil {
		c.refuse(err)
	}
	return word[A](text)
}

// All makes one argument of several futures: a slice of their values in that order.
// A call needs at most 1000 others; for more, add in layers.
func All[A any](of ...*Future[A]) Arg[[]A] { return list[A](of) }

type list[A any] []*Future[A]

func (l list[A]) bind(c *call) word[[]A] {
	runs := make([]run, 0, 1)
	for _, f := range l {
		r := ref{c.need(f), f != nil && f.text}
		if n := len(runs); n > 0 && runs[n-1].text == r.text {
			runs[n-1].last++
			continue
		}
		runs = append(runs, run{r, r.need})
	}
	parts := make([]string, len(runs))
	for i, r := range runs {
		parts[i] = r.String()
	}
	return word[[]A]("[" + strings.Join(parts, ",") + "]")
}

// ref is a result that an argument stands for: that of the need of this number, from
// 1, as JSON or as a text.
type ref struct {
	need int
	text bool
}

// run is references to results that stand side by side.
type run struct {
	ref

	last int
}

const textual = ":text"

// String is how references are written.
func (r run) String() string {
	s := "$" + strconv.Itoa(r.need)
	if r.last > r.need {
		s += ".." + strconv.Itoa(r.last)
	}
	if r.text {
		s += textual
	}
	return s
}

// references reads what an argument stands for; several says that it is a list. JSON
// stands for none.
func references(word string) (refs []ref, several bool, err error) {
	inner, several := word, strings.HasPrefix(word, "[$") && strings.HasSuffix(word, "]")
	switch {
	case several:
		inner = word[1 : len(word)-1]
	case !strings.HasPrefix(word, "$"):
		return nil, false, nil
	}
	for part := range strings.SplitSeq(inner, ",") {
		r, err := parseRun(part)
		if err != nil {
			return nil, several, err
		}
		for n := r.need; n <= r.last; n++ {
			refs = append(refs, ref{n, r.text})
		}
	}
	return refs, several, nil
}

func parseRun(part string) (r run, err error) {
	numbers, text := strings.CutSuffix(strings.TrimPrefix(part, "$"), textual)
	first, last, found := strings.Cut(numbers, "..")
	if !found {
		last = first
	}
	r.text = text
	if r.need, err = strconv.Atoi(first); err == nil {
		r.last, err = strconv.Atoi(last)
	}
	if err != nil || !strings.HasPrefix(part, "$") || r.need < 1 || r.last < r.need || r.last > most {
		return run{}, fmt.Errorf("%q is not a reference to a result, such as $1, $2..5 or $6%s", part, textual)
	}
	return r, nil
}

// most bounds what a reference may name; a task needs at most 1000 others.
const most = 1000

// Future is the result, of type R, of a task. In a plan it is an argument for calls, and
// something that other tasks can need (see [plan.Plan.Add]; a program gets it as JSON).
// Its value is there when the task has succeeded.
type Future[R any] struct {
	handle

	m    *manager.Manager
	plan *plan.Plan // nil for a task of its own
	text bool       // it is an output, and no JSON
}

// handle is what a future is a need by.
type handle = plan.Dep

// Output is the result of a program, as a value of type R: a string or []byte is what
// the program has written, without the newline at the end, anything else is JSON,
// so that a number is a number.
func Output[R any](p *plan.Plan, of plan.Dep) *Future[R] {
	return &Future[R]{handle: of, m: p.Manager(), plan: p, text: true}
}

// Result is the result of a function that is called elsewhere in a plan, of which only
// the id is known: Result[int](p, plan.ID(12)).
func Result[R any](p *plan.Plan, of plan.Dep) *Future[R] {
	return &Future[R]{handle: of, m: p.Manager(), plan: p}
}

// Attach is the result of a call by its id, in a plan or not: what one program has
// submitted another can wait for.
func Attach[R any](m *manager.Manager, id int64) *Future[R] {
	return &Future[R]{handle: plan.ID(id), m: m}
}

// ID is the id of the task; 0 before it was sent.
func (f *Future[R]) ID() int64 {
	switch of := f.handle.(type) {
	case plan.ID:
		return int64(of)
	case interface{ ID() int64 }: // a task, or the future of something else
		return of.ID()
	default:
		return 0
	}
}

// Get waits until the task has ended, and returns the value. If the task was retried,
// the value is that of the retry. A task that has not succeeded is a
// *plan.ResultError, which matches plan.ErrNoResult: it says how the task ended (failed,
// timed out, cancelled, ...), by which rule, and of its last round the worker, the exit code
// and the error, be it that of the function, a panic or text on stderr. A value that is no R
// is a *[ValueError]. The error matches plan.ErrNotSent for a call whose plan was not sent, and
// is otherwise that of [manager.Manager.Wait].
func (f *Future[R]) Get(ctx context.Context) (R, error) {
	for waited := int64(0); ; {
		value, err := f.Value(ctx)
		none, ok := errors.AsType[*plan.ResultError](err)
		if !ok || none.End != statemachine.None || none.Task == waited { // a damaged one has no end
			return value, err
		}
		waited = none.Task // the call, or what it was retried by meanwhile
		if _, err := f.m.Wait(ctx, []int64{none.Task}, nil); err != nil {
			return value, err
		}
	}
}

// Value is [Future.Get] without waiting: as long as the task has not ended, the error is
// a *plan.ResultError with an empty End.
func (f *Future[R]) Value(ctx context.Context) (value R, err error) {
	text, err := f.read(ctx)
	if err != nil {
		return value, err
	}
	if err := decode(text, f.text, &value); err != nil {
		var none R
		return none, &ValueError{Task: f.ID(), Err: err}
	}
	return value, nil
}

func (f *Future[R]) read(ctx context.Context) (string, error) {
	if f.plan == nil {
		return plan.Result(ctx, f.m, f.ID())
	}
	return f.plan.Result(ctx, f.handle)
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
