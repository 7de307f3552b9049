package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/ops/trace"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// history is what the recorded events say.
type history struct {
	events []task.Event
	// last is the number of the last one that was read.
	last int64
	// made are the tasks whose creation is recorded, known all that are named.
	made, known map[int64]bool
	// lowest is the lowest id in made, or 0.
	lowest int64
	// first is when the first event happened; steady says that no event happened
	// before the one that comes before it, so that no clock was set back.
	first   statemachine.Time
	inOrder bool
	// silent says that programs of ours that record no events have claimed tasks
	// since the first event: those of a release before there were any.
	silent bool
}

// since reports whether the events go back to before the id was given out.
func (h *history) since(id int64) bool { return h.lowest > 0 && h.lowest < id }

const (
	// page is how many events are read in one call.
	page = 1000
	// mostEvents is how many of the newest are looked at.
	mostEvents = 200_000
)

// readHistory reads the events.
func (a *auditor) readHistory(ctx context.Context) error {
	if err := a.extend(ctx); err != nil {
		return err
	}
	if err := a.dropBroken(ctx); err != nil {
		return err
	}
	h := &a.history
	a.report.History = History{Events: int64(len(h.events)), Tasks: int64(len(h.known)), Whole: int64(len(h.made))}
	if n := len(h.events); n > 0 {
		a.report.History.From, a.report.History.To = h.events[0].Seq, h.events[n-1].Seq
	}
	return nil
}

// extend reads the events that came since. It stops at what was the end when it
// came there: a namespace at work never stops.
func (a *auditor) extend(ctx context.Context) error {
	h := &a.history
	for {
		events, err := a.store.Events(ctx, h.last+1, page)
		if err != nil {
			return err
		}
		for i := range events {
			e := &events[i]
			h.last = e.Seq
			if e.Err != nil {
				a.say(Violation{Kind: Path, Text: fmt.Sprintf("event %d cannot be read: %v", e.Seq, e.Err)})
				continue
			}
			h.events = append(h.events, *e)
		}
		if len(h.events) > 2*mostEvents {
			h.events = slices.Clone(h.events[len(h.events)-mostEvents:])
		}
		if len(events) < page {
			h.index()
			return nil
		}
	}
}

// dropBroken forgets the events that Redis has dropped while the others were
// read: between those some may be missing.
func (a *auditor) dropBroken(ctx context.Context) error {
	h := &a.history
	oldest, _, err := a.store.EventSpan(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(h.events, func(e task.Event) bool { return e.Seq >= oldest })
	h.events = h.events[max(i, 0):]
	h.events = h.events[max(0, len(h.events)-mostEvents):]
	h.index()
	return nil
}

// index goes through the events once more.
func (h *history) index() {
	h.made, h.known, h.lowest, h.first, h.inOrder = map[int64]bool{}, map[int64]bool{}, 0, 0, true
	last := statemachine.Time(0)
	for i := range h.events {
		e := &h.events[i]
		at := task.Stamp(e.At)
		h.known[e.ID] = true
		if e.Event == statemachine.Create {
			h.made[e.ID] = true
			if h.lowest == 0 || e.ID < h.lowest {
				h.lowest = e.ID
			}
		}
		if i == 0 {
			h.first = at
		}
		h.inOrder = h.inOrder && at >= last
		last = at
	}
}

// compareHistory looks for steps that cannot have been, and for tasks that are not where their last event leaves them.
// One that differs is looked at again, with the events that came since: only
// if it has stood still meanwhile is there something to say.
func (a *auditor) compareHistory(ctx context.Context) error {
	for _, p := range trace.Check(a.history.events) {
		a.path(sprint(p.Event.ID, Path, "%s", p), legal(&p.Event))
	}
	before := map[int64]astray{}
	ids := slices.Sorted(maps.Keys(a.history.known))
	for look := 1; len(ids) > 0 && look <= maxLooks; look++ {
		if look > 1 && !timing.Pause(ctx, a.pause) {
			return ctx.Err()
		}
		if err := a.extend(ctx); err != nil {
			return err
		}
		found, err := a.astray(ctx, ids)
		if err != nil {
			return err
		}
		ids = ids[:0]
		for _, t := range found {
			if look < looks || before[t.id] != t {
				before[t.id] = t
				ids = append(ids, t.id)
				continue
			}
			a.path(sprint(t.id, Path, "its last event leaves it %s in round %d, but it is %s in round %d",
				t.where.State, t.where.Round, t.at.State, t.at.Round), true)
		}
	}
	return nil
}

// astray is a task that is not where its last event leaves it.
type astray struct {
	id          int64
	where, at   trace.Where
	fingerprint string
}

// astray returns those tasks that are not where the events leave them, and may be on their way. Nothing is known of a damaged one,
// which is told of elsewhere.
func (a *auditor) astray(ctx context.Context, ids []int64) (found []astray, err error) {
	ends := trace.Ends(a.history.events)
	for part := range slices.Chunk(ids, chunk) {
		tasks, _, err := a.store.Inspect(ctx, part)
		if err != nil {
			return nil, err
		}
		for i := range tasks {
			s, t := snapshot{Inspection: &tasks[i]}, &tasks[i].Task
			at := trace.Where{State: s.state(), Round: t.Round}
			if where, told := ends[t.ID]; told && t.Err == nil && !where.MayBe(at) {
				found = append(found, astray{t.ID, where, at, s.Fingerprint()})
			}
		}
	}
	return found, nil
}

// path tells of a violation. Where programs take part that record no events, a step
// that may be missing for that reason is only worth a note.
func (a *auditor) path(v Violation, missing bool) {
	if missing && a.history.silent {
		v.Text += "; programs of an older release, which record no events, take part"
		a.remark(v)
		return
	}
	a.say(v)
}

// legal reports whether the machine has the step, so that it is wrong only because
// of what comes before it.
func legal(e *task.Event) bool {
	return slices.ContainsFunc(statemachine.Table(), func(row statemachine.Transition) bool {
		return row.Event == e.Event && row.From == e.From && row.To == e.To && slices.Contains(row.Actors, e.Actor)
	})
}

// hear notes claims of programs that record no events: those that do put the epoch
// into the claim.
func (h *history) hear(s *snapshot) {
	for n := range min(s.Task.Round+1, mostRounds) {
		claim := s.stamps[statemachine.RoundField(n, "claim")]
		if claim != "" && h.first > 0 && !strings.HasPrefix(claim, "e") {
			at, err := statemachine.ParseTime(s.stamps[statemachine.RoundField(n, string(statemachine.Running))])
			h.silent = h.silent || err == nil && at >= h.first
		}
	}
}
