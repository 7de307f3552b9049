package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// listing is the verb ls with its flags.
type listing struct {
	choice choice
	limit  int
	all    bool
	output string
	json   *bool
	dirs   *[]string
}

// The forms of --output.
const (
	tableOutput = "table"
	wideOutput  = "wide"
)

func (a *app) ls() *cobra.Command {
	l := &listing{}
	cmd := &cobra.Command{
		Use: "ls [TASKS]", Aliases: []string{listAlias}, Short: "List tasks, of each state those that came last first",
		Long: "ls lists tasks. A column QUEUE is there if not all are in the default queue; --output wide adds where\n" +
			"they run and what they ask for. In JSON, status is the number Disbatch has for the state.\n\n" + selectorHelp + "\n\n" +
			"With --archive it lists tasks of an archive, those first that were archived last, or with --limit 0 in the order\n" +
			"in which they were written; there --state says how they ended, and last means nothing.",
		Example: "  tdf-manager ls\n  tdf-manager ls --state failed --queue nightly --match 'No space'\n  tdf-manager ls 3-9 -o wide",
	}
	l.choice.flags(cmd)
	cmd.Flags().IntVar(&l.limit, "limit", 20, "most tasks of each state; 0 for no limit")
	cmd.Flags().BoolVar(&l.all, "all", false, "archived tasks too")
	cmd.Flags().StringVarP(&l.output, "output", "o", tableOutput, "table or wide")
	l.json = jsonFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("output", "json")
	l.dirs = archiveFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("all", archiveName)
	live, cold := a.withBoth(l.do), a.withArchive(l.dirs, l.cold)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(*l.dirs) > 0 {
			return cold(cmd, args)
		}
		return live(cmd, args)
	}
	return cmd
}

// listFields are the columns, and what the JSON form has of each task.
var listFields = []string{
	"id", "state", roundField, programField, sourceField, "input", "argv", "fails", "timeouts", "losses", "faults", "releases",
	"start_after", "not_before", "end_before", "timeout", "outcome", queueField, envField, "labels", "resources", "priority",
	"key", holdField, "cancel_requested", "cancel_reason", "retry_of", "retried_by", "replay_of",
}

// listed is what ls found.
type listed struct {
	tasks []map[string]string
	// more are the states of which there are tasks beyond the limit.
	more []statemachine.State
	// missing are ids of no task.
	missing []int64
}

func (l *listing) do(ctx context.Context, s *session) error {
	sel, err := l.selection(ctx, s)
	if err != nil {
		return err
	}
	found, err := l.read(ctx, s, sel)
	if err != nil {
		return err
	}
	if len(found.tasks) == 0 {
		if err := l.choice.nothing(ctx, s); err != nil {
			return err
		}
	}
	if err := addRounds(ctx, s, found.tasks, *l.json || l.output == wideOutput); err != nil {
		return err
	}
	if *l.json {
		err = cli.WriteJSON(s.out, taskObjects(found.tasks))
	} else {
		err = l.table(s, l.columns(found.tasks), found.tasks, true)
	}
	if err == nil {
		err = l.hints(ctx, s, found, sel)
	}
	if err == nil && len(found.missing) > 0 {
		return cli.Exit(cli.ExitTaskFailed)
	}
	return err
}

func (l *listing) check() error {
	switch {
	case l.limit < 0:
		return cli.Usagef("--limit %d is negative", l.limit)
	case l.output != tableOutput && l.output != wideOutput:
		return cli.Usagef("--output %q is unknown; write table or wide, or use --json", l.output)
	}
	return nil
}

// selection is which tasks to show.
func (l *listing) selection(ctx context.Context, s *session) (manager.Selection, error) {
	if err := l.check(); err != nil {
		return manager.Selection{}, err
	}
	sel, err := l.choice.selection(ctx, s)
	sel.All = sel.IDs == nil
	sel.Archived, sel.Fields, sel.Newest = l.all, listFields, true
	if l.limit > 0 && sel.All {
		sel.Limit = l.limit + 1 // to know whether there are more
	}
	return sel, err
}

// read reads the tasks and leaves out what is beyond the limit.
func (l *listing) read(ctx context.Context, s *session, sel manager.Selection) (listed, error) {
	var found listed
	counts := map[statemachine.State]int{}
	for tasks, err := range s.manager.Select(ctx, sel, page) {
		if err != nil {
			return found, err
		}
		for i := range tasks {
			t := &tasks[i]
			counts[t.State]++
			switch {
			case t.State == statemachine.None:
				found.missing = append(found.missing, t.ID)
			case sel.Limit > 0 && counts[t.State] > l.limit:
				found.more = append(found.more, t.State)
			default:
				found.tasks = append(found.tasks, fieldsOf(t))
			}
		}
	}
	return found, nil
}

// fieldsOf are the fields of a task, corrected by what is known better: also where
// the hash is spoilt or was written by a foreign client.
func fieldsOf(t *manager.Summary) map[string]string {
	f := t.Fields
	f["id"], f["state"], f["queue"] = strconv.FormatInt(t.ID, 10), string(t.State), t.Queue
	f["status"] = strconv.Itoa(t.DisbatchStatus())
	if t.Outcome != statemachine.None {
		f["outcome"] = string(t.Outcome)
	}
	return f
}

func taskObjects(tasks []map[string]string) []map[string]any {
	objects := make([]map[string]any, len(tasks))
	for i, t := range tasks {
		objects[i] = jsonFields(t)
	}
	return objects
}
