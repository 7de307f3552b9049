package verbs

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
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
	live, cold := a.withManager(false, noOptions, l.do), a.withArchive(l.dirs, l.cold)
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

// Fields of a round, and what ls --json calls them.
const (
	progressField = "progress"
	workerField   = "worker"
	nodeField     = "node"
)

// addRounds reads what is told of the present round of tasks: of those that run
// the progress, and of all, if asked for, where they run or ran.
func addRounds(ctx context.Context, s *session, tasks []map[string]string, places bool) error {
	if places {
		if err := addRound(ctx, s, tasks, workerField, nodeField); err != nil {
			return err
		}
	}
	running := slices.DeleteFunc(slices.Clone(tasks), func(t map[string]string) bool {
		return t["state"] != string(statemachine.Running)
	})
	return addRound(ctx, s, running, progressField)
}

// addRound reads fields of the present round. Tasks of many rounds are few, so
// all their round fields are asked of all of a page.
func addRound(ctx context.Context, s *session, tasks []map[string]string, fields ...string) error {
	for part := range slices.Chunk(tasks, page) {
		ids := make([]int64, len(part))
		var names []string
		for i, t := range part {
			ids[i], _ = strconv.ParseInt(t["id"], 10, 64) // it was made from a number
			for _, field := range fields {
				if name := ofRound(t, field); name != "" && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		if len(names) == 0 {
			continue
		}
		found, err := s.store.Fields(ctx, ids, names...)
		if err != nil {
			return err
		}
		for i, t := range part {
			for _, field := range fields {
				if text := found[i][ofRound(t, field)]; text != "" {
					t[field] = text
				}
			}
		}
	}
	return nil
}

// ofRound is the name of the field in the task's round; empty if that is spoilt.
func ofRound(task map[string]string, field string) string {
	round, err := strconv.Atoi(task["round"])
	if err != nil {
		return ""
	}
	return statemachine.RoundField(round, field)
}

// column is one of the table of tasks.
type column struct {
	head string
	cell func(map[string]string) string
}

func fieldColumn(head, field string) column {
	return column{head: head, cell: func(t map[string]string) string { return t[field] }}
}

// columns are those that help: some only where a task has something to say.
func (l *listing) columns(tasks []map[string]string) []column {
	wide := l.output == wideOutput
	some := func(says func(map[string]string) bool) bool { return slices.ContainsFunc(tasks, says) }
	list := []column{fieldColumn("ID", "id"), {"STATE", stateCell}, fieldColumn("ROUND", "round")}
	if wide || some(func(t map[string]string) bool { return t["queue"] != manager.DefaultQueue }) {
		list = append(list, fieldColumn("QUEUE", "queue"))
	}
	if wide {
		list = append(list, column{"PRIORITY", func(t map[string]string) string { return cmp.Or(t["priority"], "0") }},
			column{"WORKER", dash(workerField)}, column{"NODE", dash(nodeField)}, column{"ASKS", asksCell})
	}
	list = append(list, fieldColumn("PROGRAM", "program"), column{"INPUT", inputCell})
	if some(func(t map[string]string) bool { return t[progressField] != "" }) {
		list = append(list, column{"PROGRESS", progressCell})
	}
	return list
}

// table prints tasks, the first of them below the heads of the columns.
func (l *listing) table(s *session, columns []column, tasks []map[string]string, first bool) error {
	var heads []string
	for _, c := range columns {
		if first {
			heads = append(heads, c.head)
		}
	}
	table := cli.NewTable(s.out, heads...)
	for _, t := range tasks {
		cells := make([]any, len(columns))
		for i, c := range columns {
			cells[i] = c.cell(t)
		}
		table.Row(cells...)
	}
	return table.Flush()
}

func stateCell(t map[string]string) string {
	if t["outcome"] != "" {
		return t["state"] + " (" + t["outcome"] + ")"
	}
	return t["state"]
}

// dash is the cell of a field, "-" where it says nothing.
func dash(field string) func(map[string]string) string {
	return func(t map[string]string) string { return cmp.Or(t[field], "-") }
}

// asksCell is what the task asks of a worker and its node.
func asksCell(t map[string]string) string {
	var parts []string
	if t[envField] != "" {
		parts = append(parts, "env "+t[envField])
	}
	for _, list := range []string{t["labels"], t["resources"]} {
		if list != "" {
			parts = append(parts, list)
		}
	}
	return cmp.Or(strings.Join(parts, " "), "-")
}

func inputCell(t map[string]string) string {
	const width = 60
	var argv []string
	if t["argv"] != "" && json.Unmarshal([]byte(t["argv"]), &argv) != nil {
		argv = nil
	}
	return shorten(task.InputText(t["input"], argv), width)
}

func progressCell(t map[string]string) string {
	const width = 40
	return shorten(manager.ParseProgress(t[progressField]).String(), width)
}

// shorten keeps a table readable: at most so many characters.
func shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}

// hints says what is not shown, and what to do where there is nothing.
func (l *listing) hints(ctx context.Context, s *session, found listed, sel manager.Selection) error {
	errs := s.cmd.ErrOrStderr()
	counts, err := s.manager.Count(ctx)
	if err != nil {
		return err
	}
	if err := l.moreHints(s, found.more, counts, sel); err != nil {
		return err
	}
	hidden := sel.IDs == nil && len(sel.States) == 0 && !l.all
	n := counts[statemachine.Archived]
	switch {
	case len(found.missing) > 0:
		const most = 100
		return printf(errs, "no such task: %s\n", shorten(ranges(found.missing), most))
	case hidden && n > 0:
		return printf(errs, "%d archived tasks are not shown; see them with --all\n", n)
	case len(found.tasks) > 0 || *l.json:
		return nil
	case l.choice.Narrow():
		return printf(errs, "no task fits\n")
	default:
		return printf(errs, "there are no tasks; open one with %s\n", s.command("submit"))
	}
}

// moreHints tells of tasks beyond the limit: how many, unless that would have to be
// counted one by one.
func (l *listing) moreHints(s *session, more []statemachine.State, counts manager.Counts, sel manager.Selection) error {
	known := sel.Queue == "" && sel.Program == "" && sel.Match == nil
	for _, state := range more {
		format := "more tasks than these are %[2]s; see them with --limit 0\n"
		if known {
			format = "%[1]d more tasks are %[2]s; see them with --limit 0\n"
		}
		if err := printf(s.cmd.ErrOrStderr(), format, counts[state]-int64(l.limit), state); err != nil {
			return err
		}
	}
	return nil
}
