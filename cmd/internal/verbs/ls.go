package verbs

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// listing is the verb ls with its flags.
type listing struct {
	choice choice
	limit  int
	output string
	dirs   *[]string
}

// The forms of --output.
const (
	tableOutput = "table"
	wideOutput  = "wide"
)

func (a *app) ls() *cobra.Command {
	l := &listing{}
	cmd := withJSON(&cobra.Command{
		Use: "ls [TASKS]", Aliases: []string{listAlias}, Short: "List tasks, by state and the newest first",
		Long: "ls lists tasks. The state of an archived task is shown as its outcome. A task that was retried is\n" +
			"marked; " + retriedHelp + "\n" +
			"A task is marked as cut if a part of its output (output_max), or of the files that it was to return, is\n" +
			"lost; in JSON cut names what. The column QUEUE appears if a task is in\n" +
			"another queue than the default; --output wide adds where tasks run and their demands. In JSON, status is\n" +
			"a number for the state (docs/QUEUES.md), and rounds has the present round only, with its place\n" +
			"and progress.\n\n" + selectorHelp + "\n\n" +
			"With --archive it lists tasks of an archive, the last archived first, or with --limit 0 in the order\n" +
			"of writing; --state then selects by outcome, and last has no meaning.",
		Example: "  tdf-manager ls\n  tdf-manager ls --state failed --queue nightly --match 'No space'\n  tdf-manager ls 3-9 -o wide",
	})
	l.choice.flags(cmd)
	cmd.Flags().IntVar(&l.limit, "limit", 20, "at most this many tasks of each state; 0 for no limit")
	cmd.Flags().StringVarP(&l.output, "output", "o", tableOutput, "table or wide")
	cmd.MarkFlagsMutuallyExclusive("output", jsonName)
	l.dirs = archiveFlag(cmd)
	cmd.RunE = liveOrCold(l.dirs, a.withManager(l.do), a.withArchive(l.dirs, l.cold))
	return cmd
}

func (l *listing) do(ctx context.Context, s *session) error {
	if err := l.check(); err != nil {
		return err
	}
	sel, err := l.choice.selection(ctx, s)
	if err != nil {
		return err
	}
	found, err := answer.List(ctx, s.manager, sel, l.limit, s.json || l.output == wideOutput)
	if err != nil {
		return err
	}
	if len(found.Tasks) == 0 {
		if err := l.choice.nothing(ctx, s); err != nil {
			return err
		}
	}
	err = s.result(found.Tasks, func() { l.table(s, l.columns(found.Tasks), found.Tasks, true) })
	if err == nil {
		err = l.hints(ctx, s, found, sel)
	}
	if err == nil && len(found.Missing) > 0 {
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

// column is one of the table of tasks.
type column struct {
	head string
	cell func(*task.Task) string
}

// columns are those that help: some only where a task has something to say.
func (l *listing) columns(tasks []*task.Task) []column {
	wide := l.output == wideOutput
	list := []column{
		{"ID", func(t *task.Task) string { return strconv.FormatInt(t.ID, 10) }},
		{"STATE", stateCell},
		{"ROUND", func(t *task.Task) string { return strconv.Itoa(t.Round) }},
	}
	if wide || slices.ContainsFunc(tasks, func(t *task.Task) bool { return t.Queue != task.DefaultQueue }) {
		list = append(list, column{"QUEUE", func(t *task.Task) string { return t.Queue }})
	}
	if wide {
		list = append(list,
			column{"PRIORITY", func(t *task.Task) string { return strconv.Itoa(orZero(t.Priority)) }},
			column{"WORKER", func(t *task.Task) string { return cmp.Or(listedRound(t).Worker, "-") }},
			column{"NODE", func(t *task.Task) string { return cmp.Or(listedRound(t).Node, "-") }},
			column{"ASKS", asksCell})
	}
	list = append(list, column{"PROGRAM", func(t *task.Task) string { return t.Program }}, column{"INPUT", inputCell})
	if slices.ContainsFunc(tasks, func(t *task.Task) bool { return !listedRound(t).Progress.IsZero() }) {
		list = append(list, column{"PROGRESS", progressCell})
	}
	return list
}

// listedRound is the round that a list has of a task.
func listedRound(t *task.Task) *task.Round {
	if len(t.Rounds) == 0 {
		return &task.Round{}
	}
	return &t.Rounds[0]
}

// table prints tasks, the first of them below the heads of the columns.
func (l *listing) table(s *session, columns []column, tasks []*task.Task, first bool) {
	var heads []string
	for _, c := range columns {
		if first {
			heads = append(heads, c.head)
		}
	}
	table := s.out.Table(heads...)
	for _, t := range tasks {
		cells := make([]any, len(columns))
		for i, c := range columns {
			cells[i] = c.cell(t)
		}
		table.Row(cells...)
	}
	table.Flush()
}

func stateCell(t *task.Task) string {
	state := string(cmp.Or(t.End(), t.State))
	if t.RetriedBy != 0 {
		state += " (retried)"
	}
	if t.Cut != nil {
		state += " (cut)"
	}
	return state
}

// asksCell is what the task asks of a worker and its node.
func asksCell(t *task.Task) string {
	var parts []string
	if t.Env != "" {
		parts = append(parts, "env "+t.Env)
	}
	for _, list := range []string{strings.Join(t.Labels, ","), task.Resources(t.Resources).Text()} {
		if list != "" {
			parts = append(parts, list)
		}
	}
	return cmp.Or(strings.Join(parts, " "), "-")
}

func inputCell(t *task.Task) string {
	const width = 60
	return clean.Shorten(task.InputText(t.Input, t.Argv), width)
}

func progressCell(t *task.Task) string {
	const width = 40
	return clean.Shorten(listedRound(t).Progress.String(), width)
}

// hints says what is not shown, and what to do where there is nothing.
func (l *listing) hints(ctx context.Context, s *session, found *answer.Listed, sel manager.Selection) error {
	counts, err := s.manager.Count(ctx)
	if err != nil {
		return err
	}
	l.moreHints(s, found.More, counts, sel)
	switch {
	case len(found.Missing) > 0:
		s.note("no such task: %s", someIDs(found.Missing))
	case len(found.Tasks) > 0 || s.json:
	case l.choice.Narrow():
		s.note("no task fits")
	default:
		s.note("there are no tasks; open one with %s", s.command("submit"))
	}
	return nil
}

// moreHints tells of tasks beyond the limit: how many, unless that would have to be
// counted one by one.
func (l *listing) moreHints(s *session, more []statemachine.State, counts manager.Counts, sel manager.Selection) {
	for _, state := range more {
		known := sel.Plan == 0 && sel.Queue == "" && sel.Program == "" && len(sel.Meta) == 0 && sel.Match == nil &&
			(len(sel.States) == 0 || !state.IsOutcome())
		some := state == statemachine.Archived && len(sel.States) > 0 && !slices.Contains(sel.States, state) // by their outcomes
		if known && !some {
			s.note("%d more tasks are %s; see them with --limit 0", counts[state]-int64(l.limit), state)
		} else {
			s.note("more tasks than these are %s; see them with --limit 0", state)
		}
	}
}
