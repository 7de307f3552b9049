package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// selectorHelp tells how tasks are named, in the help of all verbs that take some.
const selectorHelp = "Tasks are named as 7, 3-9, 1,3,5-8, last (the one opened last) or all; --state, --queue,\n" +
	"--program and --match narrow them, and need no names: then all tasks that fit are meant."

// choice is what words and flags say about which tasks are meant: those that fit
// all of it.
type choice struct {
	states                []string
	queue, program, match string
}

func (c *choice) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&c.states, "state", nil, "only tasks in these states, separated by commas")
	flags.StringVar(&c.queue, "queue", "", "only tasks of this queue")
	flags.StringVar(&c.program, "program", "", "only tasks of this program")
	flags.StringVar(&c.match, "match", "", "only tasks whose last round has an error that fits this regular expression")
}

// narrow reports whether a flag narrows the choice.
func (c *choice) narrow() bool {
	return len(c.states) > 0 || c.queue != "" || c.program != "" || c.match != ""
}

// selection puts words and flags together. Flags alone mean all tasks that fit;
// without a word or a flag nothing is chosen: neither IDs nor All.
func (c *choice) selection(ctx context.Context, s *session) (manager.Selection, error) {
	return c.selectionWith(s, s.newest(ctx))
}

// selectionWith is selection where newest says what the word last means.
func (c *choice) selectionWith(s *session, newest func() (int64, error)) (manager.Selection, error) {
	for _, name := range []string{queueField, programField, "match"} {
		if flag := s.cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return manager.Selection{}, cli.Usagef("--%s is empty; leave it out, or say what to look for", name)
		}
	}
	sel := manager.Selection{Queue: c.queue, Program: c.program}
	for _, name := range c.states {
		state := statemachine.State(name)
		if !state.Valid() {
			return sel, cli.Usagef("--state %q is not a state; write one of %s", name, stateNames())
		}
		if !slices.Contains(sel.States, state) {
			sel.States = append(sel.States, state)
		}
	}
	var err error
	if c.match != "" {
		if sel.Match, err = regexp.Compile(c.match); err != nil {
			return sel, cli.Usagef("--match %q is not a regular expression: %w", c.match, err)
		}
	}
	sel.IDs, sel.All, err = parseSelector(s.args, newest)
	sel.All = sel.All || sel.IDs == nil && c.narrow()
	return sel, err
}

// nothing is what to say where no task fits: an unknown queue explains it.
func (c *choice) nothing(ctx context.Context, s *session) error {
	if c.queue == "" {
		return nil
	}
	_, err := s.manager.Queue(ctx, c.queue)
	return s.unknownQueue(ctx, c.queue, err)
}

func stateNames() string {
	names := make([]string, 0, len(statemachine.States()))
	for _, state := range statemachine.States() {
		names = append(names, string(state))
	}
	return strings.Join(names, ", ")
}

// unknownQueue adds to the error for a queue that is not there which one may have
// been meant.
func (s *session) unknownQueue(ctx context.Context, name string, err error) error {
	if !errors.Is(err, manager.ErrNoQueue) {
		return err
	}
	queues, listErr := s.manager.Queues(ctx)
	if listErr != nil {
		return err // it says enough
	}
	known := make([]string, len(queues))
	for i := range queues {
		known[i] = queues[i].Name
	}
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("%w; %s", err, meant(name, known, "see tdf-manager queue ls")))
}
