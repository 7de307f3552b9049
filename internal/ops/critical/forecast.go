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

	ends   []Phase // of those that have ended, or end now without having run; Waiting and Running of others
	skips  []bool  // they are expected to be skipped, once others have ended
	reach  []reach // until they are over
	before []int   // the task before this one in its chain, -1 for none
}

// Look looks at a graph, whose tasks stand behind all that they need. failure is what its plan does on one; what
// holds it is taken not to be retried. All that has not ended is expected to succeed, once, and what runs only after
// a failure to be skipped.
func Look(tasks []Task, failure task.OnFailure) Forecast {
	n := len(tasks)
	w := walk{
		tasks: tasks, failure: failure, expected: expect(tasks),
		ends: make([]Phase, n), skips: make([]bool, n), reach: make([]reach, n), before: make([]int, n),
	}
	f := Forecast{Timed: w.expected.all > 0}
	longest := reach{last: -1}
	for i := range tasks {
		if w.visit(i) {
			f.Tasks++
			f.Work += w.expected.rest(&tasks[i])
		}
		if w.reach[i].longer(longest) {
			longest = w.reach[i]
		}
	}
	f.PathTime = longest.time
	f.Path = w.path(longest)
	return f
}

// visit finds out when a task is over, and whether it is to run until then.
func (w *walk) visit(i int) bool {
	t := &w.tasks[i]
	w.before[i], w.reach[i].last = -1, -1
	if w.ends[i] = t.Phase; t.Phase.Ended() {
		return false
	}
	longest := reach{last: -1}
	if t.Phase == Waiting {
		var skipped bool
		longest, skipped = w.waits(i)
		if w.ends[i].Ended() {
			return false
		}
		if skipped {
			w.skips[i], w.reach[i] = true, longest
			return false
		}
	}
	w.before[i] = longest.last
	w.reach[i] = reach{time: longest.time + w.expected.rest(t), tasks: longest.tasks + 1, last: i}
	return true
}

// waits finds out when a task goes on: when all that it needs is over, or, if it is skipped because of one of them, when
// the first of these is. It notes the end of one that never runs.
func (w *walk) waits(i int) (until reach, skipped bool) {
	first := reach{last: -1}
	until.last = -1
	for _, need := range w.tasks[i].Needs {
		end, r := w.ends[need.Task], w.reach[need.Task]
		if end.Ended() {
			if w.ends[i] = w.verdict(need.On, end); w.ends[i].Ended() {
				return reach{last: -1}, false
			}
			continue
		}
		if w.skips[need.Task] {
			end = Skipped
		} else {
			end = Succeeded
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
	for i := r.last; i >= 0; i = w.before[i] {
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

// Need is a task that another one waits for, by its place in the list: before that other one.
type Need struct {
	Task int
	On   task.When
}

// Task is a task of a graph. Those of one step, or else of one program, are expected to take alike long.
type Task struct {
	Step, Program string
	Phase         Phase
	// Time is how long a task that has succeeded took, or one that runs has run as yet; 0 if that is not known.
	Time  time.Duration
	Needs []Need
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

// expectations are how long tasks are expected to take.
type expectations struct {
	steps, programs map[string]time.Duration
	all             time.Duration // 0 as long as no task has succeeded
}

func expect(tasks []Task) expectations {
	steps, programs := map[string][]time.Duration{}, map[string][]time.Duration{}
	var all []time.Duration
	for i := range tasks {
		t := &tasks[i]
		if t.Phase != Succeeded || t.Time <= 0 {
			continue
		}
		all = append(all, t.Time)
		programs[t.Program] = append(programs[t.Program], t.Time)
		if t.Step != "" {
			steps[t.Step] = append(steps[t.Step], t.Time)
		}
	}
	return expectations{steps: medians(steps), programs: medians(programs), all: median(all)}
}

func medians(times map[string][]time.Duration) map[string]time.Duration {
	found := make(map[string]time.Duration, len(times))
	for name, list := range times {
		found[name] = median(list)
	}
	return found
}

// median is the one in the middle, the lower one of two; 0 of none. It sorts the list.
func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[(len(times)-1)/2]
}

// of is how long a task is expected to take: as others of its step, else of its program, else of the graph.
func (e *expectations) of(t *Task) time.Duration {
	if d, known := e.steps[t.Step]; known {
		return d
	}
	if d, known := e.programs[t.Program]; known {
		return d
	}
	return e.all
}

// rest is how long a task that has not ended is still expected to take: nothing of one that runs longer than expected.
func (e *expectations) rest(t *Task) time.Duration {
	d := e.of(t)
	if t.Phase == Running {
		d = max(0, d-t.Time)
	}
	return d
}
