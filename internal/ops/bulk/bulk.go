// Package bulk is for verbs that change many tasks: it reads which ones a person means,
// changes them, and tells what became of them.
package bulk

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Filter is a [manager.Selection] as a person writes it: the words and flags of a command,
// or the query of an address. A task fits if it fits all of it.
type Filter struct {
	// Tasks are ids and words: 7, 3-9, 1,3,5-8 or all; or a job, which stands alone: j7, or last, that of the task opened last.
	Tasks []string
	// States are names of states; Match is a regular expression.
	States                []string
	Queue, Program, Match string
	// Meta are attributes; see [manager.Selection].
	Meta map[string]string

	job task.PlanID // that Selection has found in Tasks
}

// LastTask is the word for the job made last, or the task opened last, AllTasks that for every task.
const (
	LastTask = "last"
	AllTasks = "all"
)

// mostSelected bounds what a slip such as 1-999999999999 can ask for.
const mostSelected = 10_000_000

// FilterError says which field of a [Filter] is wrong, by its name in small letters, and what to write.
type FilterError struct{ Field, Problem string }

// Error begins with the field.
func (e *FilterError) Error() string { return e.Field + " " + e.Problem }

func badTasks(part, remedy string) error {
	return &FilterError{"tasks", fmt.Sprintf("%q: %s", part, remedy)}
}

// Narrow reports whether the filter has a condition beside ids: of Tasks a job is one, once Selection has read it.
func (f *Filter) Narrow() bool {
	return f.job > 0 || len(f.States) > 0 || f.Queue != "" || f.Program != "" || f.Match != "" || len(f.Meta) > 0
}

// OnlyJob reports whether Selection has found a job, and no other condition.
func (f *Filter) OnlyJob() bool {
	rest := *f
	rest.job = 0
	return f.job > 0 && !rest.Narrow()
}

// Last is what the word last means: the task opened last, and its job, 0 for none.
type Last struct {
	Task int64
	Job  task.PlanID
}

// Selection reads the filter. newest finds what last means; see [Newest].
// Conditions alone mean all tasks that fit; without any nothing is chosen: neither IDs nor All.
// The error is a [FilterError], or that of newest.
func (f *Filter) Selection(newest func() (Last, error)) (manager.Selection, error) {
	sel := manager.Selection{Queue: f.Queue, Program: f.Program, Meta: f.Meta}
	for _, name := range f.States {
		state := statemachine.State(name)
		if !state.Valid() {
			return sel, &FilterError{"state", fmt.Sprintf("%q is not a state; write one of %s", name, stateNames())}
		}
		if !slices.Contains(sel.States, state) {
			sel.States = append(sel.States, state)
		}
	}
	var err error
	if f.Match != "" {
		if sel.Match, err = regexp.Compile(f.Match); err != nil {
			return sel, &FilterError{"match", fmt.Sprintf("%q is not a regular expression: %v", f.Match, err)}
		}
	}
	if f.job, err = parseJob(f.Tasks, newest); err != nil {
		return sel, err
	}
	if sel.Plan = f.job; f.job == 0 {
		sel.IDs, sel.All, err = parseTasks(f.Tasks, newest)
	}
	sel.All = sel.All || sel.IDs == nil && f.Narrow()
	return sel, err
}

// Archived is [Filter.Selection] of tasks of an archive. All of them are archived, so states say how they ended.
func (f *Filter) Archived(newest func() (Last, error)) (manager.Selection, error) {
	sel, err := f.Selection(newest)
	if err != nil {
		return sel, err
	}
	for _, state := range sel.States {
		if state != statemachine.Archived && !state.IsOutcome() {
			return sel, &FilterError{"state", string(state) + ": an archive has tasks that have ended and were archived; " +
				"write archived for all of them, or how they ended, such as failed"}
		}
	}
	return sel, nil
}

func stateNames() string {
	names := make([]string, 0, len(statemachine.States()))
	for _, state := range statemachine.States() {
		names = append(names, string(state))
	}
	return strings.Join(names, ", ")
}

// JobOf reads the name of a job, such as j7; 0 for another text.
func JobOf(text string) task.PlanID {
	id := task.PlanOf(text)
	if id < 1 || text != plans.JobName(id) {
		return 0
	}
	return id
}

// NamesOne reports whether a word names one task by itself: its id, and last if that is to be a task.
func NamesOne(word string, lastIsTask bool) bool {
	if word == LastTask {
		return lastIsTask
	}
	return word != AllTasks && JobOf(word) == 0 && !strings.ContainsAny(word, ",-")
}

// parseJob reads the name of a job, or finds that of the task opened last; 0 where the words are others.
func parseJob(words []string, newest func() (Last, error)) (task.PlanID, error) {
	if len(words) == 1 && words[0] == LastTask {
		last, err := newest()
		return last.Job, err
	}
	text := strings.Join(words, ",")
	for part := range strings.SplitSeq(text, ",") {
		if JobOf(part) > 0 && part != text {
			return 0, badTasks(part, "a job stands alone")
		}
	}
	return JobOf(text), nil
}

// parseTasks reads ids and words. The ranges are sorted and do not overlap; no words
// mean no task, rather than all.
func parseTasks(words []string, newest func() (Last, error)) (list []manager.IDRange, all bool, err error) {
	if len(words) == 0 {
		return nil, false, nil
	}
	text := strings.Join(words, ",")
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == AllTasks {
			if text != AllTasks {
				return nil, false, badTasks(part, "all stands alone")
			}
			return nil, true, nil
		}
		var r manager.IDRange
		if part == LastTask {
			var last Last
			last, err = newest()
			r.First, r.Last = last.Task, last.Task
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
		return nil, false, badTasks(text, fmt.Sprintf("more than %d tasks; use all", mostSelected))
	}
	return list, false, nil
}

func parseRange(part string) (manager.IDRange, error) {
	from, to, ranged := strings.Cut(part, "-")
	if !ranged {
		to = from
	}
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if err1 != nil || err2 != nil || first < 1 || last < first {
		return manager.IDRange{}, badTasks(part, "write task ids such as 7, 3-9 or 1,3,5-8, a job such as j7, last, or all")
	}
	return manager.IDRange{First: first, Last: last}, nil
}

// merge sorts ranges and joins those that overlap, so that no task comes twice.
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

// ParseID reads the id of one task. newest finds the task that last means.
func ParseID(text string, newest func() (Last, error)) (int64, error) {
	if text == LastTask {
		last, err := newest()
		return last.Task, err
	}
	if job := JobOf(text); job > 0 {
		return 0, badTasks(text, "a job; write the id of one of its tasks, which ls "+text+" lists")
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, badTasks(text, "write the id of one task, such as 7, or last")
	}
	return id, nil
}

// Newest makes the function that finds the task opened last, for [Filter.Selection] and [ParseID].
func Newest(ctx context.Context, m *manager.Manager) func() (Last, error) {
	return func() (Last, error) {
		id, err := m.NewestTask(ctx)
		if err == nil && id == 0 {
			err = badTasks(LastTask, "no task has been opened yet")
		}
		last := Last{Task: id}
		if err != nil {
			return last, err
		}
		for t, err := range m.Select(ctx, manager.Selection{IDs: []manager.IDRange{{First: id, Last: id}}, Fields: []string{"plan"}}) {
			if err != nil {
				return last, err
			}
			last.Job = t.Plan
		}
		return last, nil
	}
}
