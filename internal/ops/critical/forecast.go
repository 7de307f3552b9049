// Package critical estimates how long a graph of tasks still takes: from how long its tasks took that have ended, and from
// the longest chain of those that have not. It is pure: it knows no clock and reads nothing.
//
// A graph of a hundred thousand tasks with a million needs takes some tens of milliseconds.
package critical

import (
	"slices"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Forecast is what is still to come of a graph.
type Forecast struct {
	// Timed says that the times are known: at least one task has succeeded.
	Timed bool
	// Path are the places of the tasks of the longest chain that are to run still, in their order; by the number of
	// tasks as long as no times are known. PathTime is how long it takes, if each of them begins at once.
	Path     []int
	PathTime time.Duration
	// Work is how long all tasks that are to run still take together, Tasks how many they are.
	Work  time.Duration
	Tasks int
}

// Left is a lower bound of the time left with a number of tasks running at a time; false if it is not known.
func (f *Forecast) Left(slots int) (time.Duration, bool) {
	if f.Tasks == 0 {
		return 0, true
	}
	if !f.Timed || slots < 1 {
		return 0, false
	}
	return max(f.PathTime, f.Work/time.Duration(slots)), true
}

// reach is a chain up to the end of a task. last is the last task of it that runs, -1 if none has to any more.
type reach struct {
	time        time.Duration
	tasks, last int
}

func (r reach) longer(than reach) bool {
	return r.time > than.time || r.time == than.time && r.tasks > than.tasks
}

// walk goes through the tasks of a graph, each behind those that it needs.
type walk struct {
	tasks    []Task
	failure  task.OnFailure
	expected expectations
	nodes    []node
}

// node is the forecast of one task.
type node struct {
	end    Phase // if it has ended, or ends now without having run; else Waiting or Running
	skips  bool  // it is expected to be skipped, once others have ended
	reach  reach // until it is over
	before int   // the task before this one in its chain, -1 for none
}

// Look looks at a graph, whose tasks stand behind all that they need. failure is what its plan does on one; what
// holds it is taken not to be retried. All that has not ended is expected to succeed, once, and what runs only after
// a failure to be skipped.
func Look(tasks []Task, failure task.OnFailure) Forecast {
	w := walk{tasks: tasks, failure: failure, expected: expect(tasks), nodes: make([]node, len(tasks))}
	f := Forecast{Timed: len(w.expected) > 0}
	longest := reach{last: -1}
	for i := range tasks {
		if w.visit(i) {
			f.Tasks++
			f.Work += w.expected.rest(&tasks[i])
		}
		if r := w.nodes[i].reach; r.longer(longest) {
			longest = r
		}
	}
	f.PathTime = longest.time
	f.Path = w.path(longest)
	return f
}

// visit finds out when a task is over, and whether it is to run until then.
func (w *walk) visit(i int) bool {
	t, n := &w.tasks[i], &w.nodes[i]
	n.before, n.reach.last = -1, -1
	if n.end = t.Phase; n.end.Ended() {
		return false
	}
	longest := reach{last: -1}
	if t.Phase == Waiting {
		var skipped bool
		longest, skipped = w.waits(i)
		if n.end.Ended() {
			return false
		}
		if skipped {
			n.skips, n.reach = true, longest
			return false
		}
	}
	n.before = longest.last
	n.reach = reach{time: longest.time + w.expected.rest(t), tasks: longest.tasks + 1, last: i}
	return true
}

// waits finds out when a task goes on: when all that it needs is over, or, if it is skipped because of one of them, when
// the first of these is. It notes the end of one that never runs.
func (w *walk) waits(i int) (until reach, skipped bool) {
	first := reach{last: -1}
	until.last = -1
	for _, need := range w.tasks[i].Needs {
		n := &w.nodes[need.Index]
		if n.end.Ended() {
			if w.nodes[i].end = w.verdict(need.On, n.end); w.nodes[i].end.Ended() {
				return reach{last: -1}, false
			}
			continue
		}
		end, r := Succeeded, n.reach
		if n.skips {
			end = Skipped
		}
		if w.verdict(need.On, end) != Waiting && (!skipped || first.longer(r)) {
			first, skipped = r, true
		}
		if r.longer(until) {
			until = r
		}
	}
	if skipped {
		return first, true
	}
	return until, false
}

// path are the tasks of a chain, in their order.
func (w *walk) path(r reach) []int {
	path := make([]int, 0, r.tasks)
	for i := r.last; i >= 0; i = w.nodes[i].before {
		path = append(path, i)
	}
	slices.Reverse(path)
	return path
}

// Phase is how far a task is.
type Phase uint8

// How far a task can be.
const (
	Waiting Phase = iota
	Running
	Succeeded
	Failed  // it has ended in another way, or will without having run
	Skipped // it was not to run, and that is no failure
)

// Ended reports whether nothing more is to come of the task.
func (p Phase) Ended() bool { return p >= Succeeded }

// Task is a task of a graph. Those of one step, or else of one program, are expected to take alike long.
type Task struct {
	Step, Program string
	Phase         Phase
	// Time is how long a task that has succeeded took, or one that runs has run as yet; 0 if that is not known.
	Time time.Duration
	// Needs are the tasks that it waits for, each by its Index in the graph: before the task itself.
	Needs []task.Need
}

// verdict is what becomes of a task whose need has ended like that: Waiting if that is enough.
func (w *walk) verdict(on task.When, end Phase) Phase {
	state := statemachine.Failed
	if end == Succeeded {
		state = statemachine.Succeeded
	}
	switch on.Verdict(state, end == Skipped, w.failure) {
	case task.VerdictMet:
		return Waiting
	case task.VerdictSkip:
		return Skipped
	default:
		return Failed
	}
}

// likeness is what tasks have in common that are expected to take alike long.
type likeness struct{ of, name string }

// anyTask is what all tasks have in common.
var anyTask = likeness{}

// like is what a task has in common with others, the closest first.
func (t *Task) like() []likeness {
	all := []likeness{{"step", t.Step}, {"program", t.Program}, anyTask}
	if t.Step == "" {
		return all[1:]
	}
	return all
}

// expectations are how long tasks are expected to take. They are empty until a task has succeeded.
type expectations map[likeness]time.Duration

func expect(tasks []Task) expectations {
	times := map[likeness][]time.Duration{}
	for i := range tasks {
		if t := &tasks[i]; t.Phase == Succeeded && t.Time > 0 {
			for _, l := range t.like() {
				times[l] = append(times[l], t.Time)
			}
		}
	}
	medians := make(expectations, len(times))
	for l, list := range times {
		slices.Sort(list)
		medians[l] = list[(len(list)-1)/2] // the lower one of two
	}
	return medians
}

// rest is how long a task that has not ended is still expected to take, as others of its step, else of its program, else of the
// graph: nothing of one that runs longer than expected.
func (e expectations) rest(t *Task) time.Duration {
	for _, l := range t.like() {
		d, known := e[l]
		switch {
		case known && t.Phase == Running:
			return max(0, d-t.Time)
		case known:
			return d
		}
	}
	return 0
}
