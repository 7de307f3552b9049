package trace

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// walker moves tasks through the machine at random and records it.
type walker struct {
	*rapid.T

	tasks  []sm.Task
	now    sm.Time
	events []task.Event
}

// walk is what a few tasks have gone through until all are archived. Where
// foreign clients take part, their steps are made and not recorded.
func walk(t *rapid.T, foreign bool) []task.Event {
	w := &walker{T: t}
	limit := rapid.SampledFrom([]sm.Limit{0, 1, 3})
	for i := range rapid.IntRange(1, 3).Draw(t, "tasks") {
		w.tasks = append(w.tasks, sm.Task{
			ID: int64(i + 1), EndBefore: sm.Time(rapid.IntRange(5, 60).Draw(t, "end_before")), Timeout: 3,
			MaxFails: limit.Draw(t, "max_fails"), MaxTimeouts: limit.Draw(t, "max_timeouts"),
			MaxLosses: limit.Draw(t, "max_losses"), MaxFaults: limit.Draw(t, "max_faults"),
		})
	}
	for live := w.live(); len(live) > 0; live = w.live() {
		w.now++
		w.step(&w.tasks[rapid.SampledFrom(live).Draw(t, "task")], foreign)
	}
	return w.events
}

// live are the tasks that are not archived. They are created in the order of
// their ids.
func (w *walker) live() []int {
	var live []int
	for i := range w.tasks {
		if w.tasks[i].State != sm.Archived {
			live = append(live, i)
		}
		if w.tasks[i].State == sm.None {
			break
		}
	}
	return live
}

// step makes one of the steps that the machine allows now, if there is any.
func (w *walker) step(t *sm.Task, foreign bool) {
	var moves []sm.Move
	for _, o := range occurrences(t, foreign) {
		if m, err := sm.Decide(t, o, w.now); err == nil && (!m.AskStop || !t.StopAsked) {
			moves = append(moves, m)
		}
	}
	if len(moves) == 0 {
		return
	}
	m := moves[rapid.IntRange(0, len(moves)-1).Draw(w.T, "move")]
	after, result, err := sm.Apply(*t, m, w.now)
	if err != nil || result != sm.Moved {
		w.Fatalf("%+v: %v, %v", m, result, err)
	}
	silent := foreign && quiet(w.T, &m, t)
	*t = after
	if !silent {
		w.events = append(w.events, task.Event{
			ID: m.ID, Round: m.Round, From: m.From, To: m.To, Event: m.Event, Actor: m.Actor, Seq: int64(w.now),
			At: time.UnixMicro(int64(len(w.events))), // each is a move of its own
		})
	}
}

// quiet says that a foreign client makes this step.
func quiet(t *rapid.T, m *sm.Move, before *sm.Task) bool {
	switch m.Event {
	case sm.Create, sm.Archive:
		return m.To != sm.Blocked && rapid.Bool().Draw(t, "foreign")
	case sm.Claim:
		return m.Claim == ""
	case sm.Report:
		return before.Current.Claim == "foreign"
	default:
		return false
	}
}

// occurrences are all that may happen to t, whether it is due or not.
func occurrences(t *sm.Task, foreign bool) []sm.Occurrence {
	var all []sm.Occurrence
	for _, event := range sm.Events() {
		for _, actor := range sm.Actors() {
			for _, flag := range []bool{false, true} {
				all = append(all, sm.Occurrence{
					Event: event, Actor: actor, Claim: "ours", Round: t.Round, Failed: flag, Held: flag, Excused: flag,
				})
			}
		}
	}
	if foreign {
		all = append(all, sm.Occurrence{Event: sm.Claim, Actor: sm.Worker})
	}
	return all
}

// TestWalksAreLegal: whatever the machine allows, and however much of the
// beginning is cut off, has no problem, and ends where the tasks are.
func TestWalksAreLegal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := walk(t, rapid.Bool().Draw(t, "with foreign clients"))
		events = events[rapid.IntRange(0, len(events)).Draw(t, "cut off"):]
		for _, p := range Check(events) {
			t.Error(p)
		}
		for id, at := range Ends(events) {
			if at.State != sm.Archived && !at.State.IsOutcome() {
				t.Errorf("task %d ends as %s", id, at.State)
			}
		}
	})
}

// TestCorruptionIsFound: any one step of whole lives that is changed into
// something else, left out or said twice is found, unless it could have been so.
func TestCorruptionIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := walk(t, false)
		i := rapid.IntRange(0, len(events)-1).Draw(t, "which")
		spoilt := slices.Clone(events)
		what := rapid.SampledFrom([]string{"round", "from", "to", "event", "actor", "seq", "left out", "twice"}).Draw(t, "what")
		e := &spoilt[i]
		switch what {
		case "round":
			e.Round += rapid.SampledFrom([]int{-1, 1, 2}).Draw(t, "by")
		case "from":
			e.From = rapid.SampledFrom(sm.States()).Draw(t, "from")
		case "to":
			e.To = rapid.SampledFrom(sm.States()).Draw(t, "to")
		case "event":
			e.Event = rapid.SampledFrom(sm.Events()).Draw(t, "event")
		case "actor":
			e.Actor = rapid.SampledFrom(sm.Actors()).Draw(t, "actor")
		case "seq":
			e.Seq = events[max(i-1, 0)].Seq - int64(rapid.IntRange(0, 1).Draw(t, "less"))
		case "left out":
			spoilt = slices.Delete(spoilt, i, i+1)
		case "twice":
			spoilt = slices.Insert(spoilt, i, *e)
			spoilt[i+1].Seq = e.Seq + 1
		}
		if possible(events, i, what, *e) {
			return
		}
		if found := Check(spoilt); len(found) == 0 {
			t.Fatalf("%s of %v became %v, and nothing was found", what, events[i], *e)
		}
	})
}

// possible says that the stream could have been so: the same step was made by
// another event or actor that the table allows; a foreign client has claimed
// what expired; a beginning, an end, a claim that no report needs or a mark that
// nothing came of is missing.
func possible(events []task.Event, i int, what string, is task.Event) bool {
	was := events[i]
	switch what {
	case "seq":
		return i == 0
	case "left out":
		return i == len(events)-1 || slices.Contains([]sm.Event{sm.Create, sm.Archive, sm.Claim}, was.Event) || was.From == was.To
	case "twice":
		return false
	}
	rows := slices.ContainsFunc(sm.Table(), func(row sm.Transition) bool {
		return row.From == is.From && row.To == is.To && row.Event == is.Event && slices.Contains(row.Actors, is.Actor)
	})
	switch {
	case was == is:
		return true
	case what == "from":
		return rows && was.From == sm.Open && is.From == sm.Running
	default:
		return rows && (what == "event" || what == "actor")
	}
}
