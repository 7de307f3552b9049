package audit

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/ops/trace"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// compareHistory looks for tasks that are not where their last event leaves them.
// One that differs is looked at again, with the events that came since: only
// if it has stood still meanwhile is there something to say.
func (a *auditor) compareHistory(ctx context.Context) error {
	for _, p := range a.history.problems {
		a.path(sprint(p.Event.ID, Path, "%s", p), legal(&p.Event))
	}
	before := map[int64]string{}
	ids := slices.Sorted(maps.Keys(a.history.known))
	for look := 1; len(ids) > 0 && look <= maxLooks; look++ {
		if err := a.extend(ctx); err != nil {
			return err
		}
		differ, err := a.differ(ctx, ids, before, look)
		if err != nil {
			return err
		}
		if ids = differ; len(ids) > 0 && !timing.Pause(ctx, a.pause) {
			return ctx.Err()
		}
	}
	return nil
}

// differ returns those tasks that are not where the events leave them, and may be on
// their way.
func (a *auditor) differ(ctx context.Context, ids []int64, before map[int64]string, look int) ([]int64, error) {
	ends := trace.Ends(a.history.events)
	var differ []int64
	for part := range slices.Chunk(ids, chunk) {
		found, _, err := a.store.Inspect(ctx, part)
		if err != nil {
			return nil, err
		}
		for i := range found {
			t := &found[i]
			where, told := ends[t.ID]
			switch at, known := whereabouts(t); {
			case !told || !known || where.MayBe(at):
			case look >= looks && before[t.ID] == t.Fingerprint():
				a.astray(t.ID, where, at)
			default:
				before[t.ID] = t.Fingerprint()
				differ = append(differ, t.ID)
			}
		}
	}
	return differ, nil
}

// whereabouts is where a task is. Nothing is known of a damaged one, which is told
// of elsewhere.
func whereabouts(t *store.Inspection) (trace.Where, bool) {
	s := sight{Inspection: *t}
	return trace.Where{State: s.state(), Round: t.Round}, t.Err == nil
}

func (a *auditor) astray(id int64, where, at trace.Where) {
	a.path(sprint(id, Path, "its last event leaves it %s in round %d, but it is %s in round %d",
		where.State, where.Round, at.State, at.Round), true)
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
func legal(e *trace.Event) bool {
	return slices.ContainsFunc(statemachine.Table(), func(row statemachine.Transition) bool {
		return row.Event == e.Event && row.From == e.From && row.To == e.To && slices.Contains(row.Actors, e.Actor)
	})
}

// hear notes claims of programs that record no events: those that do put the epoch
// into the claim.
func (h *history) hear(s *sight) {
	for n := range min(s.Round+1, mostRounds) {
		claim := s.stamps[statemachine.RoundField(n, "claim")]
		if claim != "" && h.first > 0 && !strings.HasPrefix(claim, "e") {
			at, err := statemachine.ParseTime(s.stamps[statemachine.RoundField(n, string(statemachine.Running))])
			h.silent = h.silent || err == nil && at >= h.first
		}
	}
}
