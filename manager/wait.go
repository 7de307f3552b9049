package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Progress says how far a set of tasks is.
type Progress struct {
	// Total is the number of tasks, Done the number of those that have ended. A retried task
	// does not count; its retry does.
	Total, Done int
	// States counts tasks by state; an archived one counts as what it ended in.
	States map[statemachine.State]int
	// Unsuccessful are the ids of tasks that ended without success, in the order they were
	// seen.
	Unsuccessful []int64
	// Cut are those that lost a part of their output or files (see [task.Task.Cut]).
	Cut []int64
	// Damaged counts tasks whose record is missing or spoilt. They are among Done and
	// Unsuccessful.
	Damaged int
	// NotReady are the ids of plans that were begun more than a minute ago and never made
	// ready, so that their tasks do not run. The program that builds one may be gone.
	// Submitting it again with its key finishes it; [Manager.CancelPlan] ends it.
	NotReady []task.PlanID
	// Running are some of the tasks that run and say how far they are, by id.
	Running []RunningTask
}

// RunningTask is a task that says how far it is.
type RunningTask struct {
	ID       int64
	Progress task.Progress
}

// Wait waits until all the tasks have ended, archived or not, and for one that was retried
// (see [Manager.Retry]) until the retry has; without ids it returns at once. report, unless
// nil, is called when something has changed, from the calling goroutine; what programs say of
// their progress (Running) is looked at each second.
//
// It returns the progress made, also with an error: [task.ErrNoTask] for an id
// that was never opened, [task.ErrGone] if the namespace is flushed meanwhile or Redis
// loses a task, or the one of ctx. While Redis is away it goes on waiting. A task
// that is deleted by itself counts as damaged.
func (m *Manager) Wait(ctx context.Context, ids []int64, report func(Progress)) (Progress, error) {
	if len(ids) == 0 {
		return Progress{}, nil
	}
	return m.newWaiter().wait(ctx, ids, report)
}

// WaitAll is [Manager.Wait] for all tasks that are there now.
func (m *Manager) WaitAll(ctx context.Context, report func(Progress)) (Progress, error) {
	w := m.newWaiter()
	ids, err := w.everything(ctx)
	if err != nil {
		return Progress{}, waitEnded(ctx, "wait", err)
	}
	return w.wait(ctx, ids, report)
}

func (w *waiter) wait(ctx context.Context, ids []int64, report func(Progress)) (Progress, error) {
	if err := w.begin(ctx, ids); err != nil {
		return Progress{}, waitEnded(ctx, "wait", err)
	}
	changed := false
	err := w.m.watch(ctx, func() (more bool, err error) {
		changed, err = w.sweep(ctx)
		return false, err
	}, func() bool {
		if changed && report != nil {
			report(w.snapshot())
		}
		return len(w.open) == 0
	})
	return w.snapshot(), waitEnded(ctx, "wait", err)
}

// watch looks whenever something may have changed, or at once if there is more to see, until an error other than that of
// an outage comes. After each look it calls tell, which may take its time, until that is over.
func (m *Manager) watch(ctx context.Context, look func() (more bool, err error), tell func() (over bool)) error {
	redis := link.New(m.log)
	changes, stop := m.store.Watch(ctx)
	defer stop()
	for {
		began := time.Now()
		more, err := look()
		spent := time.Since(began)
		switch {
		case err == nil:
			redis.Answered()
		case ctx.Err() != nil: // why it ended is said below, also where a call was cut short
		case !errors.Is(err, task.ErrUnreachable):
			return err
		default:
			redis.Failed(err) // the pause between two looks is longer
		}
		if tell() {
			return nil
		}
		if more && err == nil && ctx.Err() == nil {
			continue
		}
		if !m.untilChange(ctx, changes, 10*spent) {
			return context.Cause(ctx)
		}
	}
}

// waitEnded is why waiting ended. If ctx ended, it is the cause of that, also if err is a call that ctx cut short.
func waitEnded(ctx context.Context, what string, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, task.ErrNoTask) {
		return err
	}
	return fmt.Errorf("%s: %w", what, context.Cause(ctx))
}

// waitPoll is how often Wait looks where it is told of no change.
const waitPoll = time.Second

// untilChange waits for a hint, at most a second, but at least for gap, so that
// waiting for very many tasks costs Redis a bounded share of its time.
func (m *Manager) untilChange(ctx context.Context, changes <-chan struct{}, gap time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-changes:
	case <-m.after(waitPoll):
	}
	return m.wait(ctx, gap)
}

type waiter struct {
	m        *Manager
	all      bool     // whatever is there is waited for
	progress Progress // but for Done and States
	open     []int64
	repeats  []int64                      // retries that have not been looked up yet
	states   map[int64]statemachine.State // of the tasks waited for; None before the first look
	births   *tasks.Births                // of those in open
	active   []*task.Task                 // some of those that run
	plans    map[task.PlanID]bool         // of tasks that are blocked; false if they have been ready
}

func (m *Manager) newWaiter() *waiter {
	return &waiter{m: m, states: map[int64]statemachine.State{}, plans: map[task.PlanID]bool{}}
}

// sweepSize is how many tasks are read in one call.
const sweepSize = 1000

// begin takes the ids.
func (w *waiter) begin(ctx context.Context, ids []int64) (err error) {
	if w.births, err = w.m.store.Births(ctx); err != nil {
		return err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for chunk := range slices.Chunk(ids, sweepSize) {
		found, err := w.m.store.Fields(ctx, chunk, tasks.BirthFields("round")...)
		if err == nil {
			err = w.births.Check(ctx, chunk, found)
		}
		if err != nil {
			return err
		}
		for i, id := range chunk {
			switch {
			case found[i] != nil:
				w.add(id)
			case !w.all:
				return w.m.absent(ctx, id)
			}
		}
	}
	return nil
}

// add waits for one more task.
func (w *waiter) add(id int64) {
	w.open, w.states[id] = append(w.open, id), statemachine.None
	w.progress.Total++
}

// everything lists the ids of all tasks, some of which may not be there.
func (w *waiter) everything(ctx context.Context) (ids []int64, err error) {
	w.all = true
	spans, err := w.m.spans(ctx)
	for _, span := range spans {
		for id := span.First; id <= span.Last; id++ {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// sweep looks at every task that had not ended.
func (w *waiter) sweep(ctx context.Context) (changed bool, err error) {
	var open []int64
	w.active = nil
	for rest := w.open; len(rest) > 0; {
		chunk := rest[:min(len(rest), sweepSize)]
		found, err := w.m.store.Fields(ctx, chunk, tasks.BirthFields("outcome", "round", planField, retriedByField, "cut")...)
		if err == nil {
			err = w.births.Check(ctx, chunk, found)
		}
		if err != nil {
			w.open = slices.Concat(open, rest)
			return changed, err
		}
		rest = rest[len(chunk):]
		for i, id := range chunk {
			was := w.states[id]
			if !w.look(id, found[i]) {
				open = append(open, id)
			}
			changed = changed || w.states[id] != was
		}
	}
	w.open = open
	if err := w.followRetries(ctx); err != nil {
		return changed, err
	}
	built, err := w.readPlans(ctx)
	if err != nil {
		return changed, err
	}
	moved, err := w.readProgress(ctx)
	return changed || built || moved, err
}

// look notes what the record of a task says; it reports whether the task has ended.
func (w *waiter) look(id int64, fields map[string]string) bool {
	state, end := statemachine.State(fields["state"]), endOf(fields)
	w.states[id] = end
	switch {
	case w.retried(id, fields):
	case end == statemachine.Succeeded:
	case end.IsOutcome():
		w.progress.Unsuccessful = append(w.progress.Unsuccessful, id)
	case state.Valid() && !state.Terminal():
		w.goesOn(task.Decode(id, fields))
		return false
	default:
		w.progress.Unsuccessful = append(w.progress.Unsuccessful, id)
		w.progress.Damaged++
	}
	if _, counts := w.states[id]; counts && fields["cut"] != "" && task.Decode(id, fields).Cut != nil {
		w.progress.Cut = append(w.progress.Cut, id)
	}
	w.births.Forget(id)
	return true
}

// retried puts the retry of a task in its place, if there is one.
func (w *waiter) retried(id int64, fields map[string]string) bool {
	next, _ := strconv.ParseInt(fields[retriedByField], 10, 64)
	if next <= id { // a retry is always newer
		return false
	}
	delete(w.states, id)
	w.progress.Total--
	w.progress.Cut = slices.DeleteFunc(w.progress.Cut, func(cut int64) bool { return cut == id })
	if _, known := w.states[next]; !known {
		w.repeats = append(w.repeats, next)
	}
	return true
}

// followRetries waits for the retries too. Once all have ended, it checks whether a failed one has been retried since.
func (w *waiter) followRetries(ctx context.Context) error {
	if len(w.open)+len(w.repeats) == 0 && len(w.progress.Unsuccessful) > 0 {
		if err := w.lookAgain(ctx); err != nil {
			return err
		}
	}
	for len(w.repeats) > 0 {
		chunk := w.repeats[:min(len(w.repeats), sweepSize)]
		found, err := w.m.store.Fields(ctx, chunk, tasks.BirthFields("round")...)
		if err == nil {
			err = w.births.Check(ctx, chunk, found)
		}
		if err != nil {
			return err
		}
		for i, id := range chunk {
			if found[i] != nil { // else it has ended, and is kept no longer
				w.add(id)
			}
		}
		w.repeats = w.repeats[len(chunk):]
	}
	return nil
}

// lookAgain removes from Unsuccessful what has been retried.
func (w *waiter) lookAgain(ctx context.Context) error {
	var all []map[string]string
	for chunk := range slices.Chunk(w.progress.Unsuccessful, sweepSize) {
		found, err := w.m.store.Fields(ctx, chunk, retriedByField)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	var left []int64
	for i, id := range w.progress.Unsuccessful {
		if !w.retried(id, all[i]) {
			left = append(left, id)
		}
	}
	w.progress.Unsuccessful = left
	return nil
}

// goesOn notes a task that may have progress to tell, and the plan of a blocked one. A plan that was ready once is not
// looked at again.
func (w *waiter) goesOn(t *task.Task) {
	_, known := w.plans[t.Plan]
	switch {
	case t.State == statemachine.Running && len(w.active) < mostRunning:
		w.active = append(w.active, t)
	case t.State == statemachine.Blocked && t.Plan > 0 && !known && len(w.plans) < mostPlans:
		w.plans[t.Plan] = true
	}
}

func (w *waiter) snapshot() Progress {
	p := w.progress
	p.Done, p.States, p.Unsuccessful = p.Total-len(w.open), map[statemachine.State]int{}, slices.Clone(p.Unsuccessful)
	p.Cut = slices.Clone(p.Cut)
	for state := range maps.Values(w.states) {
		if state != statemachine.None {
			p.States[state]++
		}
	}
	return p
}

// mostRunning bounds how many running tasks are asked for their progress: it is
// for people to watch. mostPlans bounds how many plans are looked at.
const (
	mostRunning = 20
	mostPlans   = 100
)

// readProgress asks those tasks; it reports whether they say something new.
func (w *waiter) readProgress(ctx context.Context) (changed bool, err error) {
	var running []RunningTask
	err = w.m.eachRound(ctx, w.active, presentRound, []string{"progress"}, func(t *task.Task, r task.Round) {
		if !r.Progress.IsZero() {
			running = append(running, RunningTask{ID: t.ID, Progress: r.Progress})
		}
	})
	if err != nil {
		return false, err
	}
	slices.SortFunc(running, func(a, b RunningTask) int { return cmp.Compare(a.ID, b.ID) })
	changed = !slices.Equal(w.progress.Running, running)
	w.progress.Running = running
	return changed, nil
}

// readPlans looks which of those plans are half built; it reports whether that has changed.
func (w *waiter) readPlans(ctx context.Context) (changed bool, err error) {
	before := w.progress.NotReady
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(w.plans)), func(id task.PlanID) bool { return !w.plans[id] })
	if len(ids) == 0 {
		w.progress.NotReady = nil
		return len(before) > 0, nil
	}
	plans, err := w.m.store.PlansOf(ctx, ids)
	if err != nil {
		return false, err
	}
	now, err := w.m.store.Now(ctx)
	if err != nil {
		return false, err
	}
	w.progress.NotReady = nil
	for _, id := range ids {
		i := slices.IndexFunc(plans, func(p task.Plan) bool { return p.ID == id })
		w.plans[id] = i >= 0 && plans[i].State == task.PlanBuilding
		if w.plans[id] && plans[i].HalfBuilt(task.Moment(now)) {
			w.progress.NotReady = append(w.progress.NotReady, id)
		}
	}
	return !slices.Equal(before, w.progress.NotReady), nil
}

// WaitPlan waits until all tasks of a plan have ended, and returns the plan as it
// is then. A held plan is waited for, and so is one that is not ready yet.
// report, unless nil, is called when something has changed, from the calling
// goroutine. While Redis is away it goes on waiting. With the error of ctx, and with
// [task.ErrGone] if the namespace is flushed meanwhile or Redis loses the plan, it returns
// what it has read last, nil for nothing.
func (m *Manager) WaitPlan(ctx context.Context, id task.PlanID, report func(*task.Plan)) (*task.Plan, error) {
	var last, told *task.Plan
	name := fmt.Sprintf("plan %d", id)
	err := m.watch(ctx, func() (more bool, err error) {
		p, err := m.Plan(ctx, id)
		switch {
		case last != nil && errors.Is(err, task.ErrNoPlan):
			return false, fmt.Errorf("plan %d: %w", id, task.ErrGone)
		case err != nil:
			return false, err
		case last != nil && !p.Created.Equal(last.Created):
			return false, fmt.Errorf("plan %d: %w; the id means another plan now", id, task.ErrGone)
		}
		if last = p; p.Job {
			name = "job " + plans.JobName(id)
		}
		return false, nil
	}, func() bool {
		if last == nil { // Redis is away
			return false
		}
		if report != nil && !samePlan(told, last) {
			report(last)
		}
		told = last
		return last.State.Terminal() && last.Left <= 0
	})
	return last, waitEnded(ctx, "wait for "+name, err)
}

func samePlan(p, as *task.Plan) bool {
	return p != nil && p.State == as.State && p.Total == as.Total && p.Left == as.Left && p.HeldBy == as.HeldBy &&
		p.Skipped == as.Skipped && p.Growing == as.Growing && p.GrowthError == as.GrowthError && maps.Equal(p.Ended, as.Ended)
}
