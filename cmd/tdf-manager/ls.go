package main

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// listing is the verb ls with its flags.
type listing struct {
	states []string
	limit  int
	all    bool
	json   *bool
}

func (a *app) ls() *cobra.Command {
	l := &listing{}
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List tasks, of each state those that came last first",
		Args: cobra.NoArgs, RunE: a.withStore(l.do),
	}
	cmd.Flags().StringSliceVar(&l.states, "state", nil, "only tasks in these states, separated by commas")
	cmd.Flags().IntVar(&l.limit, "limit", 20, "most tasks of each state; 0 for no limit")
	cmd.Flags().BoolVar(&l.all, "all", false, "archived tasks too")
	l.json = jsonFlag(cmd)
	return cmd
}

// listFields are the columns, and what the JSON form has of each task.
var listFields = []string{
	"id", "state", "round", "program", "source", "input", "argv", "fails", "timeouts", "losses",
	"start_after", "end_before", "timeout", "outcome",
}

func (l *listing) do(ctx context.Context, s *session) error {
	states, err := l.chosen()
	if err != nil {
		return err
	}
	counts, err := s.store.Count(ctx)
	if err != nil {
		return err
	}
	var tasks []map[string]string
	for _, state := range states {
		found, err := l.inState(ctx, s, state, counts[state])
		if err == nil && state == statemachine.Running {
			err = addProgress(ctx, s, found)
		}
		if err != nil {
			return err
		}
		tasks = append(tasks, found...)
	}
	if *l.json {
		objects := make([]map[string]any, len(tasks))
		for i, t := range tasks {
			objects[i] = jsonFields(t)
		}
		return cli.WriteJSON(s.out, objects)
	}
	return l.print(s, states, tasks, counts)
}

// chosen are the states asked for.
func (l *listing) chosen() ([]statemachine.State, error) {
	if l.limit < 0 {
		return nil, cli.Usagef("--limit %d is negative", l.limit)
	}
	var chosen []statemachine.State
	for _, state := range statemachine.States() {
		if slices.Contains(l.states, string(state)) || len(l.states) == 0 && (l.all || state != statemachine.Archived) {
			chosen = append(chosen, state)
		}
	}
	for _, name := range l.states {
		if !statemachine.State(name).Valid() {
			return nil, cli.Usagef("--state %q is not a state; write one of %s", name, stateNames())
		}
	}
	return chosen, nil
}

func stateNames() string {
	names := make([]string, 0, len(statemachine.States()))
	for _, state := range statemachine.States() {
		names = append(names, string(state))
	}
	return strings.Join(names, ", ")
}

// page is how many tasks are read in one call.
const page = 500

// inState reads the tasks of one state. The id and the state are those of the
// set, also where the hash is spoilt or was written by a foreign client.
func (l *listing) inState(
	ctx context.Context, s *session, state statemachine.State, count int64,
) ([]map[string]string, error) {
	if l.limit > 0 {
		count = min(count, int64(l.limit))
	}
	var tasks []map[string]string
	for offset := int64(0); offset < count; offset += page {
		ids, err := s.store.IDs(ctx, state, offset, min(page, count-offset), true)
		if err != nil {
			return nil, err
		}
		found, err := s.store.Fields(ctx, ids, listFields...)
		if err != nil {
			return nil, err
		}
		for i, fields := range found {
			tasks = append(tasks, listed(ids[i], state, fields))
		}
	}
	return tasks, nil
}

// listed corrects what was read by the set that lists the task.
func listed(id int64, state statemachine.State, fields map[string]string) map[string]string {
	if fields == nil {
		fields = map[string]string{}
	}
	if before := fields["state"]; state == statemachine.Archived && statemachine.State(before).Ended() {
		fields["outcome"] = before
	}
	fields["id"], fields["state"] = strconv.FormatInt(id, 10), string(state)
	return fields
}

func (l *listing) print(
	s *session, states []statemachine.State, tasks []map[string]string, counts map[statemachine.State]int64,
) error {
	headers := []string{"ID", "STATE", "ROUND", "PROGRAM", "INPUT"}
	moves := slices.ContainsFunc(tasks, func(t map[string]string) bool { return t[progressField] != "" })
	if moves {
		headers = append(headers, "PROGRESS")
	}
	table := cli.NewTable(s.out, headers...)
	for _, t := range tasks {
		table.Row(listRow(t, moves)...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return l.hints(s, states, counts)
}

// listRow are the cells of one task.
func listRow(t map[string]string, progress bool) []any {
	const inputWidth, progressWidth = 60, 40
	state := t["state"]
	if t["outcome"] != "" {
		state += " (" + t["outcome"] + ")"
	}
	var argv []string
	if t["argv"] != "" && json.Unmarshal([]byte(t["argv"]), &argv) != nil {
		argv = nil
	}
	row := []any{t["id"], state, t["round"], t["program"], shorten(inputText(t["input"], argv), inputWidth)}
	if progress {
		row = append(row, shorten(manager.ParseProgress(t[progressField]).String(), progressWidth))
	}
	return row
}

// hints says what is not shown.
func (l *listing) hints(s *session, states []statemachine.State, counts map[statemachine.State]int64) error {
	for _, state := range states {
		if more := counts[state] - int64(l.limit); l.limit > 0 && more > 0 {
			err := printf(s.cmd.ErrOrStderr(), "%d more tasks are %s; see them with --limit 0\n", more, state)
			if err != nil {
				return err
			}
		}
	}
	hidden := len(l.states) == 0 && !slices.Contains(states, statemachine.Archived)
	if n := counts[statemachine.Archived]; n > 0 && hidden {
		return printf(s.cmd.ErrOrStderr(), "%d archived tasks are not shown; see them with --all\n", n)
	}
	return nil
}

// shorten keeps a table readable: at most so many characters.
func shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}
