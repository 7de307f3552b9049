package manager

import (
	"strconv"

	"github.com/tdf-go/tdf/internal/store"
)

// Digest is a short text that stands for tasks and later steps, and their order. StartAfter and EndBefore do not count: they are
// often counted from now. Give it as PlanSpec.Contents where a plan is made of them.
func Digest(specs []Spec, later []LaterStep) string {
	texts := make([]string, 0, len(specs)+len(later))
	for i := range specs {
		texts = append(texts, specs[i].digest())
	}
	for i := range later {
		step := &later[i]
		texts = append(texts, "step", step.Name, step.Lines, strconv.Itoa(step.Most), strconv.Itoa(len(step.Needs)))
		for _, n := range step.Needs {
			texts = append(texts, n.Step, orText(string(n.On), string(NeedsSuccess)))
		}
		texts = append(texts, Digest(step.Specs, nil))
	}
	return store.Digest(texts...)
}

// digest stands for the task as it was given. What was left to defaults differs from everything that can be given.
func (s *Spec) digest() string {
	const left = "\x00"
	argv := left
	if s.Argv != nil {
		argv = store.Digest(s.Argv...)
	}
	texts := append(make([]string, 0, 26+3*len(s.Needs)),
		s.Program, s.Source, s.Input, argv, durationText(s.Timeout, left),
		limitText(s.MaxFails, left), limitText(s.MaxTimeouts, left), limitText(s.MaxLosses, left), limitText(s.MaxFaults, left),
		s.FailOn, s.Queue, s.Env, labelsText(s.Labels, left), resourcesText(s.Resources, left), intText(s.Priority, left),
		delayText(s.RetryDelay, left), durationText(s.RetryMaxDelay, left), floatText(s.RetryBackoff, left), floatText(s.RetryJitter, left),
		codesText(s.RetryExitCodes, left), codesText(s.FatalExitCodes, left), s.Charge, s.Hold, s.Key, s.Args, s.Step,
	)
	for _, n := range s.Needs {
		texts = append(texts, strconv.FormatInt(n.Task, 10), strconv.Itoa(n.Index), orText(string(n.On), string(NeedsSuccess)))
	}
	return store.Digest(texts...)
}
