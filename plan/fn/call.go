package fn

import (
	"errors"
	"slices"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
)

// Option changes calls of a function: all of them if it is given with the function, or
// one.
type Option func(*call)

// WithSpec changes the tasks that calls become: their queue, timeout, max_fails and so
// on. Of the spec it gets, Program, Input, Argv, Args and Needs are the business of
// this package, and the code of [Permanent] is added to FatalExitCodes.
func WithSpec(change func(*manager.Spec)) Option {
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
	spec     manager.Spec
	words    []string   // the arguments
	needs    []plan.Dep // whose results they are
	after    []plan.Dep
	err      error // why it cannot be
}

// pass adds an argument.
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

// add adds the call to the plan.
func (c *call) add(p *plan.Plan, options ...Option) *plan.Task {
	for _, change := range options {
		change(c)
	}
	s := c.spec
	s.Program, s.Input, s.Argv, s.Args = c.function, "", c.words, manager.ArgsFiles
	if !slices.Contains(s.FatalExitCodes, permanentCode) {
		s.FatalExitCodes = append(slices.Clip(s.FatalExitCodes), permanentCode)
	}
	if c.err != nil {
		return p.Refuse(s, c.err)
	}
	return p.Add(s, append(c.needs, c.after...)...)
}
