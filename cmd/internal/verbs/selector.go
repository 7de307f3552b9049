package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("%w; %s", err, meant(name, known, "see "+s.command("queue ls"))))
}

// mostSelected bounds what a slip such as 1-999999999999 can ask for.
const mostSelected = 10_000_000

// The words that stand for tasks.
const (
	allTasks = "all"
	lastTask = "last" // the one that was opened last
)

// parseSelector reads selectors: 7, 3-9, 1,3,5-8, last, or all. newest says what
// last is. The ranges are sorted and do not overlap; no selector at all is none,
// and not all.
func parseSelector(args []string, newest func() (int64, error)) (list []manager.IDRange, all bool, err error) {
	if len(args) == 0 {
		return nil, false, nil
	}
	text := strings.Join(args, ",")
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == allTasks {
			if text != allTasks {
				return nil, false, badSelector(part, "all stands alone")
			}
			return nil, true, nil
		}
		var r manager.IDRange
		if part == lastTask {
			r.First, err = newest()
			r.Last = r.First
		} else {
			r, err = parseRange(part)
		}
		if err != nil {
			return nil, false, err
		}
		list = append(list, r)
	}
	list = merge(list)
	if count(list) > mostSelected {
		return nil, false, badSelector(text, fmt.Sprintf("more than %d tasks; use all", mostSelected))
	}
	return list, false, nil
}

// merge sorts ranges and joins those that touch, so that no task comes twice.
func merge(list []manager.IDRange) []manager.IDRange {
	slices.SortFunc(list, func(a, b manager.IDRange) int { return cmp.Compare(a.First, b.First) })
	var merged []manager.IDRange
	for _, r := range list {
		if n := len(merged); n > 0 && r.First <= merged[n-1].Last {
			merged[n-1].Last = max(merged[n-1].Last, r.Last)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// count is the number of ids, at most one more than mostSelected.
func count(list []manager.IDRange) int64 {
	n := int64(0)
	for _, r := range list {
		if n += min(r.Last-r.First, mostSelected) + 1; n > mostSelected {
			break
		}
	}
	return min(n, mostSelected+1)
}

func parseRange(part string) (manager.IDRange, error) {
	from, to, ranged := strings.Cut(part, "-")
	if !ranged {
		to = from
	}
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if err1 != nil || err2 != nil || first < 1 || last < first {
		return manager.IDRange{}, badSelector(part, "write task ids such as 7, 3-9 or 1,3,5-8, last, or all")
	}
	return manager.IDRange{First: first, Last: last}, nil
}

func badSelector(part, remedy string) error {
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("tasks %q: %s", part, remedy))
}

// parseID reads the id of one task.
func parseID(text string, newest func() (int64, error)) (int64, error) {
	if text == lastTask {
		return newest()
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, badSelector(text, "write the id of one task, such as 7, or last")
	}
	return id, nil
}

// newest makes the function that finds the task opened last.
func (s *session) newest(ctx context.Context) func() (int64, error) {
	return func() (int64, error) {
		id, err := s.store.NewestID(ctx)
		if err == nil && id == 0 {
			err = badSelector(lastTask, "no task has been opened yet")
		}
		return id, err
	}
}

// shortRanges is ranges for people, who read no thousand of them.
func shortRanges(ids []int64) string {
	const most = 500
	text := ranges(ids)
	if len(text) <= most {
		return text
	}
	whole := text[:strings.LastIndexByte(text[:most], ',')]
	return whole + ",... (--json has all of them)"
}

// ranges writes ids as a selector: 1-31,40.
func ranges(ids []int64) string {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		part := strconv.FormatInt(ids[i], 10)
		if j > i {
			part += "-" + strconv.FormatInt(ids[j], 10)
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
