package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Cancel cancels tasks, open and blocked ones at once. The worker of a running one
// is told to stop it: the task ends terminated, with its output so far. One that
// has been reported is not opened again. Ended ones stay as they are.
//
// What became of each task stands in its Change, in the order of the ids; the
// error is about the calls, and comes with the changes made before it.
func (m *Manager) Cancel(ctx context.Context, ids []int64, o ChangeOptions) ([]Change, error) {
	return m.change(ctx, statemachine.Cancel, ids, o)
}

// CancelWaiting cancels tasks that wait, open or blocked. It is as [Manager.Cancel], but one that a worker has got meanwhile
// goes on: it is refused with [task.ErrBegun].
func (m *Manager) CancelWaiting(ctx context.Context, ids []int64, o ChangeOptions) ([]Change, error) {
	o, err := m.complete(o)
	if err != nil {
		return nil, err
	}
	c := changer{ChangeOptions: o, m: m, event: statemachine.Cancel, waiting: true}
	return c.all(ctx, ids)
}

// Hold keeps open tasks from starting, until [Manager.Unhold]. See [Manager.Cancel]
// for the answer.
func (m *Manager) Hold(ctx context.Context, ids []int64, o ChangeOptions) ([]Change, error) {
	return m.change(ctx, statemachine.Hold, ids, o)
}

// Unhold opens blocked tasks. A task that waits for others of its plan is refused with
// [task.ErrWaits], one of a plan from which nothing may start now with
// [task.ErrPlanState]. See [Manager.Cancel] for the answer.
func (m *Manager) Unhold(ctx context.Context, ids []int64, o ChangeOptions) ([]Change, error) {
	return m.change(ctx, statemachine.Unblock, ids, o)
}

// Change says what became of one task, or would become of it in a dry run.
type Change struct {
	ID int64
	// Before and After are the task's states; the same if it did not move.
	Before, After statemachine.State
	// Asked says that the task goes on for now: its worker was told to stop, or
	// its report waits for the server. It is not opened again.
	Asked bool
	// Err is nil unless nothing changed. It matches [task.ErrNoTask], [task.ErrDamaged] or
	// statemachine.ErrConflict (the task kept changing), or is a
	// *statemachine.TransitionError: such a task cannot be changed like this.
	Err error
}

// ChangeOptions go with every change of tasks, plans, queues, nodes and tokens.
type ChangeOptions struct {
	// By names who wants the change, Reason says why: a line of printable text each, of
	// at most 1024 bytes, for the log of the manager and the records of tasks and plans
	// that have a place for it. Default: the name of the manager, and no reason.
	By, Reason string
	// DryRun changes nothing: the answer is what would be done.
	DryRun bool
}

// complete refuses what cannot stand in a log, and every change where the manager is unusable.
func (m *Manager) complete(o ChangeOptions) (ChangeOptions, error) {
	o.By = cmp.Or(o.By, m.name)
	if m.unusable != nil {
		return o, m.unusable
	}
	return o, cmp.Or(checkLine("by", o.By), checkLine("reason", o.Reason)) //nolint:wrapcheck // both are ours
}

// did logs a change.
func (m *Manager) did(o ChangeOptions, what string, args ...any) {
	args = append(args, "by", o.By)
	if o.Reason != "" {
		args = append(args, "reason", o.Reason)
	}
	m.log.Info(what, args...)
}

// maxReason is the longest reason, in bytes.
const maxReason = 1024

// checkLine refuses a text that could pass for more than one line of a log.
func checkLine(field, text string) error {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	if len(text) > maxReason || strings.ContainsFunc(text, odd) {
		return fieldError(field, text, "a line of printable text of at most 1024 bytes")
	}
	return nil
}

// changer brings one event about for many tasks.
type changer struct {
	ChangeOptions

	m     *Manager
	event statemachine.Event
	// waiting says that only tasks that wait are changed.
	waiting bool
}

// changePage is how many tasks are changed in one go, changeRead how many are
// read in one call.
const (
	changePage = tasks.MaxMoves
	changeRead = 50
)

// changeTries is how often a task that changes meanwhile is looked at again.
const changeTries = 5

func (m *Manager) change(ctx context.Context, event statemachine.Event, ids []int64, o ChangeOptions) ([]Change, error) {
	o, err := m.complete(o)
	if err != nil {
		return nil, err
	}
	c := changer{ChangeOptions: o, m: m, event: event}
	return c.all(ctx, ids)
}

// all changes tasks, page by page.
func (c *changer) all(ctx context.Context, ids []int64) (done []Change, err error) {
	for page := range slices.Chunk(ids, changePage) {
		var changes []Change
		if changes, err = c.page(ctx, page); err != nil {
			err = fmt.Errorf("%s: %w", c.event, err)
			break
		}
		done = append(done, changes...)
	}
	return done, earlier(err, c.m.note(ctx, c.ChangeOptions, eventVerbs[c.event], nil, changedIDs(done)))
}

// eventVerbs are the verbs that bring events about.
var eventVerbs = map[statemachine.Event]string{
	statemachine.Cancel: "cancel", statemachine.Hold: "hold", statemachine.Unblock: "release",
}

// changedIDs are the tasks that were changed.
func changedIDs(changes []Change) (ids []int64) {
	for i := range changes {
		if changes[i].Err == nil {
			ids = append(ids, changes[i].ID)
		}
	}
	return ids
}

// page changes some tasks. Those that changed between reading and moving are
// read again.
func (c *changer) page(ctx context.Context, ids []int64) ([]Change, error) {
	changes := make([]Change, len(ids))
	left := make([]*Change, len(ids))
	for i, id := range ids {
		changes[i].ID, left[i] = id, &changes[i]
	}
	for try := 0; try < changeTries && len(left) > 0; try++ {
		if err := c.attempt(ctx, left); err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, func(one *Change) bool { return !errors.Is(one.Err, statemachine.ErrConflict) })
	}
	return changes, nil
}

func (c *changer) attempt(ctx context.Context, changes []*Change) error {
	var moves, asks plan
	for part := range slices.Chunk(changes, changeRead) {
		seen, now, err := c.read(ctx, part)
		if err != nil {
			return err
		}
		refused, err := c.refusals(ctx, seen)
		if err != nil {
			return err
		}
		for i, one := range part {
			commit, ok := c.decide(one, &seen[i], now)
			if why := refused[one.ID]; ok && why != nil {
				one.After, one.Err, ok = one.Before, why, false
			}
			switch {
			case !ok || c.DryRun:
			case commit.AskStop:
				asks.add(one, commit)
			default:
				moves.add(one, commit)
			}
		}
	}
	if err := moves.carryOut(ctx, c.m, c.m.store.ApplyAll); err != nil {
		return err
	}
	return asks.carryOut(ctx, c.m, c.m.store.AskStop)
}

func (c *changer) read(ctx context.Context, part []*Change) ([]upkeep.Inspection, statemachine.Time, error) {
	ids := make([]int64, len(part))
	for i, one := range part {
		ids[i] = one.ID
	}
	var now statemachine.Time
	seen, err := retryUntilAvailable(ctx, c.m, func() (found []upkeep.Inspection, err error) {
		found, now, err = c.m.store.Inspect(ctx, ids)
		return found, err
	})
	for i := range seen {
		if seen[i].Absent() {
			seen[i].Task.Err = c.m.absent(ctx, ids[i])
		}
	}
	return seen, now, err
}

// decide says in one what will become of the task, and by which commit; none if
// nothing will.
func (c *changer) decide(one *Change, i *upkeep.Inspection, now statemachine.Time) (tasks.Commit, bool) {
	t := &i.Task
	switch {
	case t.Err != nil:
		one.Err = t.Err
		return tasks.Commit{}, false
	case slices.Contains(i.Listed, statemachine.Archived) && t.State.IsOutcome(): // by a client of the original
		t.State = statemachine.Archived
	}
	one.Before, one.After, one.Err = t.State, t.State, nil
	if c.waiting && !slices.Contains(statemachine.Waiting(), t.State) {
		one.Err = fmt.Errorf("task %d: %w", one.ID, task.ErrBegun)
		return tasks.Commit{}, false
	}
	move, err := statemachine.Decide(&t.Task, statemachine.Occurrence{Event: c.event, Actor: statemachine.Manager}, now)
	if err != nil {
		one.Err = err
		return tasks.Commit{}, false
	}
	one.After, one.Asked = move.To, move.AskStop
	return c.commit(move, t.Bucket, now), true
}

// plan is commits with the changes they are for.
type plan struct {
	changes []*Change
	commits []tasks.Commit
}

func (p *plan) add(one *Change, commit tasks.Commit) {
	p.changes, p.commits = append(p.changes, one), append(p.commits, commit)
}

// carryOut may send the commits several times: one that was made is recognised.
func (p *plan) carryOut(
	ctx context.Context, m *Manager, apply func(context.Context, ...tasks.Commit) ([]tasks.Outcome, error),
) error {
	if len(p.commits) == 0 {
		return nil
	}
	outcomes, err := retryUntilAvailable(ctx, m, func() ([]tasks.Outcome, error) { return apply(ctx, p.commits...) })
	if err != nil {
		return err
	}
	for i, o := range outcomes {
		if o.Err != nil {
			one := p.changes[i]
			one.After, one.Asked, one.Err = one.Before, false, o.Err
		}
	}
	return nil
}

// refusals says, by id, which tasks of plans cannot be released by hand: those that
// wait for others, and those of a plan of which nothing is to start.
func (c *changer) refusals(ctx context.Context, seen []upkeep.Inspection) (map[int64]error, error) {
	var ids []int64
	for i := range seen {
		if t := &seen[i].Task; c.event == statemachine.Unblock && t.Err == nil && t.State == statemachine.Blocked {
			ids = append(ids, t.ID)
		}
	}
	refused, read := map[int64]error{}, map[task.PlanID]*task.Plan{}
	if len(ids) == 0 {
		return refused, nil
	}
	found, err := c.m.fields(ctx, ids, planField, waitsField, doomedByField, holdField)
	if err != nil {
		return nil, err
	}
	for i, f := range found {
		id, plan := ids[i], task.PlanOf(f[planField])
		if plan == 0 {
			continue
		}
		if refused[id], err = c.m.refusal(ctx, read, plan, id, f); err != nil {
			return nil, err
		}
	}
	return refused, nil
}

// refusal is nil for a task that may be released. It fills in the plans it reads.
func (m *Manager) refusal(
	ctx context.Context, read map[task.PlanID]*task.Plan, plan task.PlanID, id int64, f map[string]string,
) (refused, err error) {
	if doomedBy := number(f[doomedByField]); doomedBy > 0 {
		return fmt.Errorf("task %d never runs, because of task %d: %w; retry that", id, doomedBy, task.ErrWaits), nil
	}
	if number(f[waitsField]) > 0 {
		unmet, err := retryUntilAvailable(ctx, m, func() (string, error) { return m.unmet(ctx, plan, id) })
		return fmt.Errorf("task %d needs %s: %w", id, unmet, task.ErrWaits), err
	}
	if read[plan] == nil {
		if read[plan], err = retryUntilAvailable(ctx, m, func() (*task.Plan, error) { return m.store.Plan(ctx, plan) }); err != nil {
			return nil, err
		}
	}
	p := read[plan]
	switch {
	case !plans.Runs(p):
		return fmt.Errorf("task %d: %w", id, &PlanStateError{ID: plan, State: p.State}), nil
	case p.Window > 0 && f[holdField] == "":
		return fmt.Errorf("task %d: %s: %w", id, plans.WindowText(p), task.ErrWaits), nil
	}
	return nil, nil
}

// mostNamed bounds how many tasks an error names.
const mostNamed = 5

func (m *Manager) unmet(ctx context.Context, plan task.PlanID, id int64) (string, error) {
	looked, err := m.store.Planned(ctx, plan, []int64{id}, 0)
	if err != nil {
		return "", err
	}
	needs, err := m.waitedFor(ctx, &looked[0])
	if err != nil {
		return "", err
	}
	names := make([]string, len(needs))
	for i, n := range needs {
		names[i] = strconv.FormatInt(n.ID, 10)
	}
	switch more := len(names) - mostNamed; {
	case len(names) == 0:
		return "nothing more, and a server is about to move it", nil
	case len(names) == 1:
		return "task " + names[0], nil
	case more > 0:
		return fmt.Sprintf("tasks %s and %d more", strings.Join(names[:mostNamed], ", "), more), nil
	}
	return "tasks " + strings.Join(names, ", "), nil
}

// The hash fields of the reasons.
const (
	cancelReasonField = "cancel_reason"
	holdField         = "hold"
)

func (c *changer) commit(move statemachine.Move, bucket task.Bucket, now statemachine.Time) tasks.Commit {
	o := tasks.Commit{Move: move, Writer: c.m.name, Bucket: bucket, Lines: []tasks.Line{{At: now, Text: c.line(&move)}}}
	switch {
	case c.event == statemachine.Unblock:
		o.Drop = []string{holdField}
	case c.event == statemachine.Hold:
		o.Fields = []string{holdField, cmp.Or(c.Reason, "held by "+c.By)}
	case c.Reason != "":
		o.Fields = []string{cancelReasonField, c.Reason}
	}
	return o
}

// line is what the task's log says of who wanted the change, and why.
func (c *changer) line(move *statemachine.Move) string {
	done := map[statemachine.Event]string{statemachine.Hold: "held", statemachine.Unblock: "released"}[c.event]
	switch {
	case move.AskStop:
		done = "stop asked for"
	case move.Event == statemachine.Cancel:
		done = "cancelled"
	}
	text := done + " by " + c.By
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}
