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
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Progress says how far a set of tasks is.
type Progress struct {
	// Total is the number of tasks, Done the number of those that have ended.
	Total, Done int
	// States counts tasks by state; an archived one counts as what it ended in.
	States map[statemachine.State]int
	// Unsuccessful are the ids that ended in another way than succeeded, in the
	// order they were seen.
	Unsuccessful []int64
	// Damaged counts tasks whose record is missing or spoilt. They are among Done and
	// Unsuccessful.
	Damaged int
	// NotReady are the ids of plans that were begun more than a minute ago and never made
	// ready, so that their tasks do not run. The program that builds one may be gone.
	// Submitting it again with its key finishes it; [Manager.CancelPlan] ends it.
	NotReady []int64
	// Running are some of the tasks that run and say how far they are, by id.
	Running []RunningTask
}

// RunningTask is a task that says how far it is.
type RunningTask struct {
	ID       int64
	Progress task.Progress
}

// Wait waits until all the tasks have ended, archived or not. Without ids it
// waits for all that are there now. report, unless nil, is called when
// something has changed, from the calling goroutine; what programs say of their
// progress (Running) is looked at each second.
//
// It returns the progress made, also with an error: [ErrNotFound] for an id
// that was never opened, [ErrGone] if the namespace is flushed meanwhile or Redis
// loses a task, or the one of ctx. While Redis is away it goes on waiting. A task
// that is deleted by itself counts as damaged.
func (m *Manager) Wait(ctx context.Context, ids []int64, report func(Progress)) (Progress, error) {
	w := newWaiter(m)
	redis := link.New(m.log)
	if err := w.begin(ctx, ids); err != nil {
		return Progress{}, waitEnded(ctx, err)
	}
	changes, stop := m.store.Watch(ctx)
	defer stop()
	for {
		began := time.Now()
		changed, err := w.sweep(ctx)
		switch {
		case err == nil:
			redis.Answered()
		case ctx.Err() != nil: // why it ended is said below, also where a call was cut short
		case !errors.Is(err, ErrUnreachable):
			return w.snapshot(), err
		default:
			redis.Failed(err) // the pause between two looks is longer
		}
		if changed && report != nil {
			report(w.snapshot())
		}
		if len(w.open) == 0 {
			return w.snapshot(), nil
		}
		if !m.untilChange(ctx, changes, 10*time.Since(began)) {
			return w.snapshot(), waitEnded(ctx, nil)
		}
	}
}

// waitEnded is why waiting ended. If ctx ended, it is the cause of that, also if err is a call that ctx cut short.
func waitEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	return fmt.Errorf("wait: %w", context.Cause(ctx))
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

// waiter follows a set of tasks.
type waiter struct {
	m            *Manager
	total        int
	open         []int64
	states       map[int64]statemachine.State
	births       *tasks.Births // of those in open
	unsuccessful []int64
	damaged      int
	rounds       map[int64]int  // of tasks that run, some at most
	plans        map[int64]bool // of tasks that are blocked; false if they have been ready
	notReady     []int64
	running      []RunningTask
}

func newWaiter(m *Manager) *waiter {
	return &waiter{m: m, states: map[int64]statemachine.State{}, plans: map[int64]bool{}}
}

// sweepSize is how many tasks are read in one call.
const sweepSize = 1000

// begin takes the ids; without any, all that are there.
func (w *waiter) begin(ctx context.Context, ids []int64) (err error) {
	if w.births, err = w.m.store.Births(ctx); err != nil {
		return err
	}
	all := len(ids) == 0
	if all {
		if ids, err = w.everything(ctx); err != nil {
			return err
		}
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
				w.open = append(w.open, id)
			case !all:
				return w.m.absent(ctx, id)
			}
		}
	}
	w.total = len(w.open)
	return nil
}

// everything is all ids given out so far.
func (w *waiter) everything(ctx context.Context) (ids []int64, err error) {
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
	w.rounds = map[int64]int{}
	for rest := w.open; len(rest) > 0; {
		chunk := rest[:min(len(rest), sweepSize)]
		found, err := w.m.store.Fields(ctx, chunk, tasks.BirthFields("outcome", "round", planField)...)
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
	built, err := w.readPlans(ctx)
	if err != nil {
		return changed, err
	}
	moved, err := w.readProgress(ctx)
	return changed || built || moved, err
}

// look notes what the record of a task says; it reports whether the task has ended.
func (w *waiter) look(id int64, fields map[string]string) bool {
	state := statemachine.State(fields["state"])
	w.states[id] = state
	if w.ended(id, state, statemachine.State(fields["outcome"])) {
		w.births.Forget(id)
		return true
	}
	w.runs(id, state, fields["round"])
	w.blocks(state, fields[planField])
	return false
}

// ended notes the end of a task; it reports false if it has not ended.
func (w *waiter) ended(id int64, state, outcome statemachine.State) bool {
	end := (&statemachine.Task{State: state, Outcome: outcome}).End()
	switch {
	case end == statemachine.Succeeded:
	case end.Ended():
		w.unsuccessful = append(w.unsuccessful, id)
	case state.Valid() && !state.Settled():
		return false
	default:
		w.unsuccessful = append(w.unsuccessful, id)
		w.damaged++
	}
	w.states[id] = end
	return true
}

func (w *waiter) snapshot() Progress {
	p := Progress{
		Total: w.total, Done: w.total - len(w.open), States: map[statemachine.State]int{},
		Unsuccessful: slices.Clone(w.unsuccessful), Damaged: w.damaged, NotReady: slices.Clone(w.notReady), Running: slices.Clone(w.running),
	}
	for state := range maps.Values(w.states) {
		if state != statemachine.None {
			p.States[state]++
		}
	}
	return p
}

// mostRunning bounds how many running tasks are asked for their progress: it is
// for people to watch.
const mostRunning = 20

// runs notes a task that may have progress to tell.
func (w *waiter) runs(id int64, state statemachine.State, round string) {
	if state != statemachine.Running || len(w.rounds) >= mostRunning {
		return
	}
	if n, err := strconv.Atoi(round); err == nil {
		w.rounds[id] = n
	}
}

// readProgress asks those tasks; it reports whether they say something new.
func (w *waiter) readProgress(ctx context.Context) (changed bool, err error) {
	before := w.running
	w.running = nil
	if len(w.rounds) == 0 {
		return len(before) > 0, nil
	}
	var ids []int64
	var names []string
	for id, round := range w.rounds {
		ids, names = append(ids, id), append(names, statemachine.RoundField(round, "progress"))
	}
	found, err := w.m.store.Fields(ctx, ids, names...)
	if err != nil {
		w.running = before
		return false, err
	}
	for i, id := range ids {
		if text := found[i][names[i]]; text != "" {
			w.running = append(w.running, RunningTask{ID: id, Progress: task.ParseProgress(text)})
		}
	}
	slices.SortFunc(w.running, func(a, b RunningTask) int { return cmp.Compare(a.ID, b.ID) })
	return !slices.Equal(before, w.running), nil
}

// blocks notes the plan of a blocked task. A plan that was ready once is not looked at again.
func (w *waiter) blocks(state statemachine.State, plan string) {
	id := number(plan)
	if _, known := w.plans[id]; state == statemachine.Blocked && id > 0 && !known && len(w.plans) < mostPlans {
		w.plans[id] = true
	}
}

// mostPlans bounds how many plans are looked at.
const mostPlans = 100

// readPlans looks which of those plans are half built; it reports whether that has changed.
func (w *waiter) readPlans(ctx context.Context) (changed bool, err error) {
	before := w.notReady
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(w.plans)), func(id int64) bool { return !w.plans[id] })
	if len(ids) == 0 {
		w.notReady = nil
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
	w.notReady = nil
	for _, id := range ids {
		i := slices.IndexFunc(plans, func(p task.Plan) bool { return p.ID == id })
		w.plans[id] = i >= 0 && plans[i].State == task.PlanBuilding
		if w.plans[id] && plans[i].HalfBuilt(task.Moment(now)) {
			w.notReady = append(w.notReady, id)
		}
	}
	return !slices.Equal(before, w.notReady), nil
}

// WaitPlan waits until all tasks of a plan have ended, and returns the plan as it
// is then. A held plan is waited for, and so is one that is not ready yet.
// report, unless nil, is called when something has changed, from the calling
// goroutine. While Redis is away it goes on waiting. With the error of ctx, and with
// [ErrGone] if the namespace is flushed meanwhile or Redis loses the plan, it returns
// what it has read last, nil for nothing.
func (m *Manager) WaitPlan(ctx context.Context, id int64, report func(*task.Plan)) (*task.Plan, error) {
	redis := link.New(m.log)
	changes, stop := m.store.Watch(ctx)
	defer stop()
	var last *task.Plan
	for {
		began := time.Now()
		p, err := m.Plan(ctx, id)
		if last != nil && (errors.Is(err, ErrNoPlan) || err == nil && !p.Created.Equal(last.Created)) {
			return last, goneError(id, p)
		}
		switch {
		case err == nil:
			redis.Answered()
			if report != nil && !samePlan(last, p) {
				report(p)
			}
			last = p
		case ctx.Err() != nil: // why it ended is said below, also where a call was cut short
		case !errors.Is(err, ErrUnreachable):
			return last, err
		default:
			redis.Failed(err) // the pause between two looks is longer
		}
		if planEnded(last) {
			return last, nil
		}
		if !m.untilChange(ctx, changes, 10*time.Since(began)) {
			return last, fmt.Errorf("wait for plan %d: %w", id, context.Cause(ctx))
		}
	}
}

// goneError says what became of a plan that was there; now is what there is under its id.
func goneError(id int64, now *task.Plan) error {
	err := fmt.Errorf("plan %d: %w", id, ErrGone)
	if now != nil {
		err = fmt.Errorf("%w; the id means another plan now", err)
	}
	return err
}

func planEnded(p *task.Plan) bool { return p != nil && p.State.Over() && p.Left <= 0 }

func samePlan(p, as *task.Plan) bool {
	return p != nil && p.State == as.State && p.Total == as.Total && p.Left == as.Left && p.HeldBy == as.HeldBy &&
		p.Skipped == as.Skipped && p.Growing == as.Growing && p.GrowthError == as.GrowthError && maps.Equal(p.Ended, as.Ended)
}
