package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// page is how many tasks are read, and changed, in one go.
const page = 500

// bulk is a verb that changes all tasks that are meant, a page at a time, and
// counts what became of them.
type bulk struct {
	choice choice
	// states are those of the tasks that the verb can change: what is looked
	// through where tasks are not named by their ids. outcomes are the same for
	// verbs that work on ended tasks, archived or not.
	states, outcomes []statemachine.State
	// narrowed says that the outcomes count also beside ids, and that they are
	// enough to say which tasks are meant.
	narrowed bool
	// careful verbs want --yes for all tasks at once.
	careful bool
	// effects are what the verb can do to a task, in the order of the report.
	effects []effect
	// change does it to a page of tasks and tells the tally. It may have changed
	// some of them also with an error.
	change func(ctx context.Context, s *session, ids []int64, t *tally) error
	// remedy is what to do instead about a task that the verb cannot change.
	remedy func(before statemachine.State) string

	dryRun, yes bool
	json        *bool
}

// effect is a thing a verb does to tasks: the name of the list in JSON, and what
// the report says of n tasks, done and in a dry run.
type effect struct{ name, done, would string }

// command makes the command of the verb with the flags all have.
func (b *bulk) command(a *app, verb, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " [TASKS]", Short: short, Long: long + "\n\n" + selectorHelp + "\n\n" +
			"It ends with 1 if a task named by its id could not be changed, or is not there.",
		Example: example,
		RunE:    a.withManager(false, noOptions, b.do),
	}
	b.choice.flags(cmd)
	dryRunFlag(cmd, &b.dryRun)
	if b.careful {
		cmd.Flags().BoolVar(&b.yes, "yes", false, "really do it to all tasks of the namespace")
	}
	b.json = jsonFlag(cmd)
	return cmd
}

// dryRunFlag adds -n to a verb that changes something.
func dryRunFlag(cmd *cobra.Command, into *bool) {
	cmd.Flags().BoolVarP(into, "dry-run", "n", false, "only say what would be done, and end as if it were")
}

// changeOptions go with every change: who wants it, and whether it is meant.
func changeOptions(dryRun bool) []manager.ChangeOption {
	opts := []manager.ChangeOption{manager.By(operator())}
	if dryRun {
		opts = append(opts, manager.DryRun())
	}
	return opts
}

// operator is who is at work, for the logs of tasks.
func operator() string {
	who, err := user.Current()
	if err != nil {
		return "tdf-manager"
	}
	host, err := os.Hostname()
	if err != nil {
		return cli.Safe(who.Username)
	}
	return cli.Safe(who.Username + "@" + host)
}

func (b *bulk) do(ctx context.Context, s *session) error {
	sel, err := b.selection(ctx, s)
	if err != nil {
		return err
	}
	t := newTally(b.effects, b.dryRun)
	err = b.pages(ctx, s, sel, t)
	if err == nil && t.empty() {
		err = b.choice.nothing(ctx, s)
	}
	if err != nil && t.empty() {
		return err
	}
	return b.report(ctx, s, t, sel.IDs != nil && !b.choice.narrow() && !b.narrowed, err)
}

// selection is which tasks to look at.
func (b *bulk) selection(ctx context.Context, s *session) (manager.Selection, error) {
	sel, err := b.choice.selection(ctx, s)
	if err != nil {
		return sel, err
	}
	if b.narrowed {
		sel.Outcomes, sel.All = b.outcomes, sel.IDs == nil
	}
	switch {
	case sel.IDs == nil && !sel.All:
		return sel, cli.Usagef("which tasks? Name them as 7, 3-9, last or all, or narrow them by --state, --queue, --program, --match")
	case sel.All && !b.choice.narrow() && !b.narrowed && b.careful && !b.yes && !b.dryRun:
		return sel, b.unsure(ctx, s)
	case sel.All && len(sel.States) == 0 && !b.narrowed:
		sel.States, sel.Outcomes = b.states, b.outcomes
	}
	return sel, nil
}

// unsure is the answer to all without --yes.
func (b *bulk) unsure(ctx context.Context, s *session) error {
	counts, err := s.manager.Count(ctx)
	if err != nil {
		return err
	}
	n := int64(0)
	for _, state := range slices.Concat(b.states, b.outcomes) {
		n += counts[state]
	}
	if len(b.outcomes) > 0 {
		n += counts[statemachine.Archived]
	}
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("%s all means all %d tasks of namespace %s that it can change; "+
		"add --yes, or --dry-run to see what it would do", s.cmd.Name(), n, cli.Safe(s.manager.Namespace())))
}

// pages changes what is meant, page by page.
func (b *bulk) pages(ctx context.Context, s *session, sel manager.Selection, t *tally) error {
	for found, err := range s.manager.Select(ctx, sel, page) {
		if err != nil {
			return err
		}
		ids := make([]int64, len(found))
		for i := range found {
			ids[i] = found[i].ID
		}
		if err := b.change(ctx, s, ids, t); err != nil {
			return err
		}
	}
	return nil
}
