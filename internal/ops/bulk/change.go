package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Change changes all tasks that are meant, a page at a time, and counts what became of them.
type Change struct {
	// Verb names it in the log of changes, with the names of attributes that it sets.
	Verb string
	Sets []string
	// States are those of the tasks that can be changed: what is looked
	// through where tasks are not named by their ids.
	States []statemachine.State
	// Careful changes want to be confirmed for all tasks at once.
	Careful bool
	// Effects are what can be done to a task, in the order of the report: the names of its lists.
	Effects []string
	// Do does it to a page of tasks and tells the tally. It may have changed
	// some of them also with an error.
	Do func(ctx context.Context, m *manager.Manager, ids []int64, o manager.ChangeOptions, t *Tally) error
	// Remedy is what to do instead about a task that cannot be changed; it may be empty.
	Remedy func(before statemachine.State) string
}

// changing makes the Do of a change that the manager makes. effect names what was done.
func changing(
	call func(*manager.Manager, context.Context, []int64, manager.ChangeOptions) ([]manager.Change, error),
	effect func(*manager.Change) string,
) func(context.Context, *manager.Manager, []int64, manager.ChangeOptions, *Tally) error {
	return func(ctx context.Context, m *manager.Manager, ids []int64, o manager.ChangeOptions, t *Tally) error {
		changes, err := call(m, ctx, ids, o)
		t.AddChanges(changes, effect)
		return err
	}
}

// always names the only effect of a change, or the only remedy.
func always[T any](text string) func(T) string { return func(T) string { return text } }

// Cancel ends tasks that wait, and stops those that run.
func Cancel() *Change {
	return &Change{
		Verb:    "cancel",
		States:  []statemachine.State{statemachine.Blocked, statemachine.Open, statemachine.Running, statemachine.Executed},
		Careful: true, Effects: []string{"cancelled", "asked", "reported", "terminated"},
		Do:     changing((*manager.Manager).Cancel, cancelEffect),
		Remedy: always[statemachine.State]("it is over; nothing is left to cancel"),
	}
}

func cancelEffect(c *manager.Change) string {
	switch {
	case c.Asked && c.Before == statemachine.Executed:
		return "reported"
	case c.Asked:
		return "asked"
	case c.After == statemachine.Terminated:
		return "terminated"
	default:
		return "cancelled"
	}
}

// Hold keeps open tasks from starting.
func Hold() *Change {
	return &Change{
		Verb: "hold", States: []statemachine.State{statemachine.Open}, Effects: []string{"held"},
		Do: changing((*manager.Manager).Hold, always[*manager.Change]("held")), Remedy: holdRemedy,
	}
}

func holdRemedy(before statemachine.State) string {
	switch {
	case before == statemachine.Blocked:
		return "it is held already"
	case before.Terminal():
		return "it is over"
	default:
		return "only open tasks can be held; cancel stops one that runs"
	}
}

// Release opens tasks that are held.
func Release() *Change {
	return &Change{
		Verb: "release", States: []statemachine.State{statemachine.Blocked}, Effects: []string{"released"},
		Do:     changing((*manager.Manager).Unhold, always[*manager.Change]("released")),
		Remedy: always[statemachine.State]("only held tasks, which are blocked, can be released"),
	}
}

// SetMeta sets attributes of tasks; see [manager.Manager.SetMeta].
func SetMeta(set map[string]string) *Change {
	with := func(m *manager.Manager, ctx context.Context, ids []int64, o manager.ChangeOptions) ([]manager.Change, error) {
		return m.SetMeta(ctx, ids, set, o)
	}
	return &Change{
		Verb: "attr", Sets: slices.Sorted(maps.Keys(set)), States: statemachine.States(), Careful: true, Effects: []string{"set"},
		Do: changing(with, always[*manager.Change]("set")), Remedy: always[statemachine.State](""),
	}
}

// SetParams gives tasks that wait other parameters; see [manager.Manager.SetParams].
func SetParams(params json.RawMessage) *Change {
	with := func(m *manager.Manager, ctx context.Context, ids []int64, o manager.ChangeOptions) ([]manager.Change, error) {
		return m.SetParams(ctx, ids, params, o)
	}
	return &Change{
		Verb: "params", States: statemachine.Waiting(), Careful: true, Effects: []string{"set"},
		Do:     changing(with, always[*manager.Change]("set")),
		Remedy: always[statemachine.State]("only tasks that wait can have other parameters"),
	}
}

// Retry opens new tasks from ended ones. The ChangeOptions are those of [Change.Run].
func Retry(o manager.RetryOptions) *Change {
	return &Change{
		Verb: "retry", States: statemachine.Outcomes(), Careful: true, Effects: []string{"opened", "existing"},
		Do: func(ctx context.Context, m *manager.Manager, ids []int64, by manager.ChangeOptions, t *Tally) error {
			o.ChangeOptions = by
			done, err := m.Retry(ctx, ids, o)
			for i := range done {
				if Denied(done[i].Err) { // then so are all
					return done[i].Err
				}
			}
			t.AddRetried(done)
			return err
		},
		Remedy: always[statemachine.State]("it has not ended; only ended tasks can be opened again"),
	}
}

// Denied reports whether Redis has refused a call because of an access list. In a
// script it answers in words, and not by NOPERM.
func Denied(err error) bool {
	var answer interface {
		error
		RedisError()
	}
	if !errors.As(err, &answer) {
		return false
	}
	text := answer.Error()
	return strings.HasPrefix(text, "NOPERM ") || strings.Contains(text, "The user executing the script can't ")
}

// Run changes the tasks of a selection that [Filter.Selection] has read. done, unless it is nil, is told how many tasks it has
// come by since the last time. With an error some of them may have changed: see t.
func (c *Change) Run(
	ctx context.Context, m *manager.Manager, sel manager.Selection, o manager.ChangeOptions, t *Tally, done func(n int),
) error {
	asked := strings.TrimSpace(selected(&sel) + SetText(c.Sets))
	if sel.All && len(sel.States) == 0 {
		sel.States = c.States
	}
	return m.Logged(ctx, c.Verb, asked, o, func(ctx context.Context) error {
		return m.EachPage(ctx, sel, func(ids []int64) error {
			err := c.Do(ctx, m, ids, o, t)
			if done != nil {
				done(len(ids))
			}
			return err
		})
	})
}

// selected says for the log of changes which tasks were asked for, if not by their ids.
func selected(sel *manager.Selection) string {
	var words []string
	add := func(name, text string) {
		if text != "" {
			words = append(words, name+text)
		}
	}
	if sel.Plan != 0 {
		add("", plans.JobName(sel.Plan))
	} else if sel.All {
		add("", AllTasks)
	}
	for _, state := range sel.States {
		add("state=", string(state))
	}
	add("queue=", sel.Queue)
	add("program=", sel.Program)
	if sel.Match != nil {
		add("match=", sel.Match.String())
	}
	for _, name := range slices.Sorted(maps.Keys(sel.Meta)) {
		add("attr=", name)
	}
	return strings.Join(words, " ")
}

// SetText is what the log of changes says of attributes that were set: their names.
func SetText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " set " + strings.Join(names, ",")
}

// Report is the JSON form of a tally: a list of ids for each effect that a change has, or of
// the old and the new id where tasks were opened.
type Report struct {
	DryRun    bool        `json:"dry_run"`
	Cancelled []int64     `json:"cancelled,omitzero"`
	Asked     []int64     `json:"asked,omitzero"`
	Reported  []int64     `json:"reported,omitzero"`
	Ended     []int64     `json:"terminated,omitzero"`
	Held      []int64     `json:"held,omitzero"`
	Released  []int64     `json:"released,omitzero"`
	Set       []int64     `json:"set,omitzero"`
	Opened    []Affected  `json:"opened,omitzero"`
	Existing  []Affected  `json:"existing,omitzero"`
	Unchanged []int64     `json:"unchanged"`
	NotFound  []int64     `json:"not_found"`
	Reasons   []Unchanged `json:"reasons"`
	// Error and Code are of a report in the middle.
	Error string `json:"error,omitempty"`
	Code  int    `json:"code,omitempty"`
}

// Unchanged says why a task stays as it is.
type Unchanged struct {
	ID     int64              `json:"id"`
	State  statemachine.State `json:"state"`
	Reason string             `json:"reason"`
}

// mostReasons is how many refused tasks a report tells one by one.
const mostReasons = 1000

// Report says what became of the tasks.
func (c *Change) Report(t *Tally, dryRun bool) *Report {
	report := &Report{DryRun: dryRun, Unchanged: []int64{}, NotFound: clean.List(t.Missing), Reasons: []Unchanged{}}
	changed := map[string]*[]int64{
		"cancelled": &report.Cancelled, "asked": &report.Asked, "reported": &report.Reported, "terminated": &report.Ended,
		"held": &report.Held, "released": &report.Released, "set": &report.Set,
	}
	opened := map[string]*[]Affected{"opened": &report.Opened, "existing": &report.Existing}
	for _, name := range c.Effects {
		done := clean.List(t.Done[name])
		if list := opened[name]; list != nil {
			*list = done
			continue
		}
		ids := make([]int64, len(done))
		for i := range done {
			ids[i] = done[i].ID
		}
		*changed[name] = ids
	}
	for i := range t.Refused {
		r := &t.Refused[i]
		report.Unchanged = append(report.Unchanged, r.ID)
		if i < mostReasons {
			report.Reasons = append(report.Reasons, Unchanged{r.ID, r.State, c.Reason(r)})
		}
	}
	return report
}

// Reason says why a task stays as it is, and what to do instead.
func (c *Change) Reason(r *Refusal) string {
	if errors.Is(r.Err, task.ErrPurged) {
		return r.Err.Error() // it names the task
	}
	if !r.WrongState() {
		return fmt.Sprintf("task %d: %v", r.ID, r.Err)
	}
	text := fmt.Sprintf("task %d is %s", r.ID, r.State)
	if remedy := c.Remedy(r.State); remedy != "" {
		text += ": " + remedy
	}
	return text
}

// Tally is what became of many tasks.
type Tally struct {
	// Done are the tasks that changed, by what was done to them.
	Done map[string][]Affected
	// Refused are those that did not change; Missing are not there.
	Refused []Refusal
	Missing []int64
}

// Affected is a task that was changed, and the one opened for it if there is one.
type Affected struct {
	ID  int64 `json:"id"`
	New int64 `json:"new,omitempty"`
}

// Refusal is a task that stays as it is.
type Refusal struct {
	ID    int64
	State statemachine.State
	Err   error
}

// AddChanges counts what [manager.Manager.Cancel], Hold or Unhold has answered. effect names what was done.
func (t *Tally) AddChanges(changes []manager.Change, effect func(*manager.Change) string) {
	for i := range changes {
		c := &changes[i]
		t.add(c.Err, effect(c), Affected{ID: c.ID}, c.Before)
	}
}

// AddRetried counts what [manager.Manager.Retry] has answered: "opened" are new tasks, "existing" were opened before.
func (t *Tally) AddRetried(retried []manager.Retried) {
	for i := range retried {
		r := &retried[i]
		t.add(r.Err, map[bool]string{false: "opened", true: "existing"}[r.Existing], Affected{ID: r.ID, New: r.New}, r.Ended)
	}
}

func (t *Tally) add(err error, effect string, one Affected, state statemachine.State) {
	switch {
	case err == nil:
		if t.Done == nil {
			t.Done = map[string][]Affected{}
		}
		t.Done[effect] = append(t.Done[effect], one)
	case errors.Is(err, task.ErrNoTask) && !errors.Is(err, task.ErrPurged):
		t.Missing = append(t.Missing, one.ID)
	default:
		t.Refused = append(t.Refused, Refusal{ID: one.ID, State: state, Err: err})
	}
}

// Empty reports whether nothing was counted.
func (t *Tally) Empty() bool { return len(t.Done)+len(t.Refused)+len(t.Missing) == 0 }

// WrongState reports whether the task is in the wrong state, and nothing else is wrong with it.
func (r *Refusal) WrongState() bool {
	var wrong *statemachine.TransitionError
	return errors.As(r.Err, &wrong) || errors.Is(r.Err, task.ErrNotEnded) || errors.Is(r.Err, task.ErrBegun)
}
