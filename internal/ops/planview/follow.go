package planview

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Follower keeps up with the tasks of a plan. It reads all of them once. Then the stream of events tells which have
// moved; those of which it does not tell, because they were too many or the stream is off, are read again bit by bit.
type Follower struct {
	*taskSet

	graph *planGraph
	after int64 // the newest event that is known
	quiet int   // for how many looks there was none

	stale  []int64   // to be read again
	unsure bool      // so are all that have not ended
	swept  time.Time // when that was done last
	peaks  peaks

	slots   func(running, open int) int
	ahead   time.Duration // of Redis' clock to ours
	checked time.Time     // when slots and clock were read
}

// What one look reads at most, and how often it reads what changes seldom.
const (
	mostPages  = 5 // of events, and of tasks that were added
	eventPage  = 1000
	stalePage  = 1000
	sweepPause = 5 * time.Second
	quietLooks = 3
	checkPause = 10 * time.Second
)

// Follow reads the tasks of the plan, to keep up with them.
func (v *View) Follow(ctx context.Context) (*Follower, error) {
	f := &Follower{taskSet: v.newSet()}
	var err error
	if _, f.after, err = v.Store.EventSpan(ctx); err != nil { // before the tasks: nothing is missed in between
		return nil, fmt.Errorf("read events: %w", err)
	}
	if err := f.grow(ctx, math.MaxInt); err != nil {
		return nil, err
	}
	f.graph = newPlanGraph(f.sorted())
	return f, f.check(ctx)
}

// Look reads what has changed. left is how many tasks have not ended by the count of the plan.
func (f *Follower) Look(ctx context.Context, left int64) error {
	if err := f.readEvents(ctx); err != nil {
		return err
	}
	if f.quiet >= quietLooks && f.counted() != left { // there are moves that make no events
		f.unsure = true
	}
	if err := f.readAdded(ctx); err != nil {
		return err
	}
	if err := f.readStale(ctx); err != nil {
		return err
	}
	return f.check(ctx)
}

// readEvents takes the newest events, or, where some may be missing, has all read again that has not ended.
func (f *Follower) readEvents(ctx context.Context) error {
	oldest, newest, err := f.view.Store.EventSpan(ctx)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	f.quiet++
	switch {
	case newest != 0 && newest == f.after:
		return nil
	case newest == 0 || f.after == 0 || oldest > f.after || newest < f.after:
		f.after, f.unsure = newest, true
		return nil
	}
	for range mostPages {
		events, err := f.view.Store.Events(ctx, f.after+1, eventPage)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		for i := range events {
			f.after = events[i].Seq
			f.apply(&events[i])
		}
		if len(events) < eventPage {
			break
		}
	}
	return nil
}

// apply notes a move.
func (f *Follower) apply(e *task.Event) {
	t := f.tasks[e.ID]
	if t == nil || e.Err != nil {
		return
	}
	f.quiet = 0
	f.peaks.moved(t.End, e.To)
	switch e.To {
	case statemachine.Running:
		t.End, t.Began, t.Executed = e.To, task.Stamp(e.At), 0
	case statemachine.Executed:
		t.End, t.Executed = e.To, task.Stamp(e.At)
	case statemachine.Archived, statemachine.None: // how it ended stands in its record
		f.stale = append(f.stale, t.ID)
	case statemachine.Cancelled: // or skipped
		t.End = e.To
		f.stale = append(f.stale, t.ID)
	default:
		t.End = e.To
	}
}

// readStale reads some tasks again.
func (f *Follower) readStale(ctx context.Context) error {
	if f.unsure && len(f.stale) == 0 && time.Since(f.swept) >= sweepPause {
		f.unsure, f.swept = false, time.Now()
		for _, t := range f.graph.tasks {
			if !t.End.IsOutcome() {
				f.stale = append(f.stale, t.ID)
			}
		}
	}
	n := min(len(f.stale), stalePage)
	if n == 0 {
		return nil
	}
	err := f.read(ctx, f.stale[:n])
	if err == nil {
		f.stale = f.stale[n:]
	}
	return err
}

// counted is how many tasks have not ended, as far as it was read.
func (f *Follower) counted() (left int64) {
	for _, t := range f.graph.tasks {
		if !t.End.IsOutcome() {
			left++
		}
	}
	return left
}

// readAdded reads tasks that the plan has got since, retries among them.
func (f *Follower) readAdded(ctx context.Context) error {
	listed := f.listed
	err := f.grow(ctx, mostPages)
	if f.listed > listed {
		f.graph = newPlanGraph(f.sorted())
	}
	return err
}

// check reads the slots and the clock, now and then.
func (f *Follower) check(ctx context.Context) error {
	if time.Since(f.checked) < checkPause {
		return nil
	}
	workers, now, err := f.view.Store.Workers(ctx)
	if err != nil {
		return fmt.Errorf("read workers: %w", err)
	}
	f.checked, f.slots = time.Now(), servedBy(workers)
	f.ahead = time.Duration(int64(now)-f.checked.UnixMicro()) * time.Microsecond
	return nil
}

// Outlook is what is still to come, by what was read.
func (f *Follower) Outlook(on task.OnFailure) *Outlook {
	now := statemachine.Time(time.Now().Add(f.ahead).UnixMicro())
	return f.graph.look(on, now, func(running, open int) int { return f.slots(f.peaks.of(running), open) })
}

// Tasks are those of the plan as they are known, each behind all that it needs.
func (f *Follower) Tasks() []*Task { return f.graph.tasks }

// peaks are the most tasks that ran at once between some looks, the newest last: tasks may be shorter than the time
// between two looks.
type peaks struct {
	list         []int
	running, top int
}

// manyLooks is over how many looks concurrency is measured.
const manyLooks = 10

// moved notes a move of a task.
func (p *peaks) moved(from, to statemachine.State) {
	if from == statemachine.Running {
		p.running--
	}
	if to == statemachine.Running {
		p.running++
	}
	p.top = max(p.top, p.running)
}

// of ends an interval between two looks, after which running tasks run, and returns the highest peak.
func (p *peaks) of(running int) int {
	p.list = append(p.list, max(p.top, running))
	p.list = p.list[max(0, len(p.list)-manyLooks):]
	p.running, p.top = running, running
	return slices.Max(p.list)
}
