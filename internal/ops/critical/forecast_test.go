package critical

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/task"
)

// waits is a task of a step of program p that needs others to succeed.
func waits(step string, needs ...int) Task {
	t := Task{Step: step, Program: "p"}
	for _, n := range needs {
		t.Needs = append(t.Needs, task.Need{Index: n})
	}
	return t
}

// took is one that has succeeded.
func took(step string, d time.Duration) Task {
	return Task{Step: step, Program: "p", Phase: Succeeded, Time: d}
}

func TestLook(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, c := range map[string]struct {
		tasks []Task
		slots int
		want  string
	}{
		"nothing":                              {nil, 1, "[] 0s of 0s, 0s left true"},
		"all over":                             {[]Task{took("a", s), {Phase: Failed, Time: 9 * s}}, 0, "[] 0s of 0s, 0s left true"},
		"no times yet":                         {[]Task{waits("a"), waits("b", 0), waits("c"), waits("d", 2), waits("e", 3)}, 4, "[2 3 4] 0s of 0s, 0s left false"},
		"the time of a failure does not count": {[]Task{{Phase: Failed, Time: s}, waits("b")}, 4, "[1] 0s of 0s, 0s left false"},
		"of its step":                          {[]Task{took("a", s), took("a", 9*s), took("a", 2*s), took("b", 5*s), waits("a")}, 1, "[4] 2s of 2s, 2s left true"},
		"of its program":                       {[]Task{took("a", s), took("b", 3*s), took("b", 3*s), waits("c")}, 1, "[3] 3s of 3s, 3s left true"},
		"of any":                               {[]Task{took("a", s), {Program: "q"}}, 1, "[1] 1s of 1s, 1s left true"},
		"the chain decides":                    {[]Task{took("a", s), waits("a"), waits("a", 1), waits("a")}, 2, "[1 2] 2s of 3s, 2s left true"},
		"the work decides":                     {[]Task{took("a", s), waits("a"), waits("a"), waits("a"), waits("a")}, 2, "[1] 1s of 4s, 2s left true"},
		"nobody serves it":                     {[]Task{took("a", s), waits("a")}, 0, "[1] 1s of 1s, 0s left false"},
		"what runs has less left":              {[]Task{took("a", 5*s), {Step: "a", Phase: Running, Time: 2 * s}, waits("a", 1)}, 1, "[1 2] 8s of 8s, 8s left true"},
		"what runs too long has none":          {[]Task{took("a", s), {Step: "a", Phase: Running, Time: 2 * s}}, 1, "[1] 0s of 0s, 0s left true"},
		"cancelled for a failure":              {[]Task{{Phase: Failed}, waits("a", 0), waits("b", 1), took("a", s)}, 1, "[] 0s of 0s, 0s left true"},
		"skipped, as expected": {[]Task{
			took("a", s), waits("a"), {Needs: []task.Need{{Index: 1, On: task.NeedsFailure}}}, waits("a", 2), {Step: "a", Needs: []task.Need{{Index: 2, On: task.NeedsAny}}},
		}, 1, "[1 4] 2s of 2s, 2s left true"},
		"skipped for the first that is over": {[]Task{
			took("a", s), took("b", 5*s), waits("a"), waits("b"), {Needs: []task.Need{{Index: 3, On: task.NeedsFailure}, {Index: 2, On: task.NeedsFailure}}}, {Step: "b", Needs: []task.Need{{Index: 4, On: task.NeedsAny}}},
		}, 2, "[2 5] 6s of 11s, 6s left true"},
		"runs after a failure": {[]Task{took("a", s), {Phase: Failed}, {Needs: []task.Need{{Index: 1, On: task.NeedsFailure}}}}, 1, "[2] 1s of 1s, 1s left true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := Look(c.tasks, task.FailureCancels)
			left, known := f.Left(c.slots)
			if got := fmt.Sprintf("%v %v of %v, %v left %v", f.Path, f.PathTime, f.Work, left, known); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if f := Look([]Task{took("a", s), {Phase: Failed}, waits("a", 1)}, task.FailureContinues); f.PathTime != s {
		t.Errorf("a plan that continues: %+v", f)
	}
}

// drawGraph draws a small graph in any state that can be.
func drawGraph(t *rapid.T) []Task {
	steps := rapid.SampledFrom([]string{"", "a", "b", "c"})
	whens := rapid.SampledFrom([]task.When{task.NeedsSuccess, task.NeedsAny, task.NeedsFailure})
	second := func(name string, least int) time.Duration {
		return time.Duration(rapid.IntRange(least, 5).Draw(t, name)) * time.Second
	}
	tasks := make([]Task, rapid.IntRange(0, 9).Draw(t, "tasks"))
	for i := range tasks {
		n := &tasks[i]
		n.Step, n.Program = steps.Draw(t, "step"), rapid.SampledFrom([]string{"p", "q"}).Draw(t, "program")
		ended := true
		for range rapid.IntRange(0, min(i, 3)).Draw(t, "needs") {
			need := task.Need{Index: rapid.IntRange(0, i-1).Draw(t, "need"), On: whens.Draw(t, "on")}
			n.Needs = append(n.Needs, need)
			ended = ended && tasks[need.Index].Phase.Ended()
		}
		if ended { // what needs nothing more may be anything
			n.Phase = Phase(rapid.IntRange(0, 4).Draw(t, "phase"))
			n.Time = second("time", 0)
		}
	}
	return tasks
}

// slowRest is how long a task still takes, found in the plainest way; 0 if no time is known.
func slowRest(tasks []Task, t *Task) time.Duration {
	for _, alike := range []func(o *Task) bool{
		func(o *Task) bool { return t.Step != "" && o.Step == t.Step },
		func(o *Task) bool { return o.Program == t.Program },
		func(*Task) bool { return true },
	} {
		var times []time.Duration
		for i := range tasks {
			if tasks[i].Phase == Succeeded && tasks[i].Time > 0 && alike(&tasks[i]) {
				times = append(times, tasks[i].Time)
			}
		}
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		d := times[(len(times)-1)/2]
		if t.Phase == Running {
			d = max(0, d-t.Time)
		}
		return d
	}
	return 0
}

// simulation runs a graph second by second, all that may run at a time.
type simulation struct {
	tasks      []Task
	continues  bool
	rest       []time.Duration
	phase      []Phase
	began, end []time.Duration // of those that ran
	ran        []bool
}

// table is what docs/PLANS.md says of needs: by the end of the other one and on_failure = continue.
var table = map[task.When]map[string]Phase{
	task.NeedsSuccess: {"failed": Failed, "skipped": Skipped, "skipped continues": Skipped},
	task.NeedsAny:     {},
	task.NeedsFailure: {"succeeded": Skipped, "succeeded continues": Skipped, "skipped": Skipped, "skipped continues": Skipped},
}

// look says whether a task may begin, and how it ends if it never will.
func (s *simulation) look(i int) (free bool, doom Phase) {
	names := map[Phase]string{Succeeded: "succeeded", Failed: "failed", Skipped: "skipped"}
	free = true
	for _, n := range s.tasks[i].Needs {
		name := names[s.phase[n.Index]]
		free = free && name != ""
		if s.continues {
			name += " continues"
		}
		if v := table[n.On][name]; v != Waiting && doom == Waiting {
			doom = v
		}
	}
	return free, doom
}

// step lets everything happen that happens at a moment; before the first one nothing begins or ends that runs.
func (s *simulation) step(now time.Duration) {
	for again := true; again; {
		again = false
		for i := range s.tasks {
			if s.phase[i] == Running && s.end[i] <= now {
				s.phase[i], again = Succeeded, true
			}
			if s.phase[i] != Waiting {
				continue
			}
			if free, doom := s.look(i); doom != Waiting {
				s.phase[i], again = doom, true
			} else if free && now >= 0 {
				s.phase[i], s.ran[i], s.began[i], s.end[i], again = Running, true, now, now+s.rest[i], true
			}
		}
	}
}

// run runs it to its end and returns when that was.
func run(tasks []Task, continues bool, rest func(*Task) time.Duration) (*simulation, time.Duration) {
	n := len(tasks)
	s := &simulation{
		tasks: tasks, continues: continues, rest: make([]time.Duration, n), phase: make([]Phase, n), ran: make([]bool, n),
		began: make([]time.Duration, n), end: make([]time.Duration, n),
	}
	for i := range tasks {
		s.phase[i], s.rest[i] = tasks[i].Phase, rest(&tasks[i])
		if s.ran[i] = tasks[i].Phase == Running; s.ran[i] {
			s.end[i] = s.rest[i]
		}
	}
	var last time.Duration
	for now := -time.Second; now <= time.Minute; now += time.Second {
		s.step(now)
	}
	for i := range tasks {
		if s.ran[i] {
			last = max(last, s.end[i])
		}
	}
	return s, last
}

// TestAgainstASimulation compares with what happens where nothing has to wait for a slot.
func TestAgainstASimulation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks := drawGraph(t)
		failure := rapid.SampledFrom([]task.OnFailure{task.FailureCancels, task.FailureHolds, task.FailureContinues}).Draw(t, "on_failure")
		f, continues := Look(tasks, failure), failure == task.FailureContinues
		s, end := run(tasks, continues, func(n *Task) time.Duration { return slowRest(tasks, n) })
		var work time.Duration
		count := 0
		for i := range tasks {
			if s.ran[i] {
				count++
				work += s.rest[i]
			}
		}
		if f.PathTime != end || f.Work != work || f.Tasks != count {
			t.Fatalf("%+v, want %v of %v for %d tasks", f, end, work, count)
		}
		checkPath(t, &f, s)
		if f.Timed {
			return
		}
		_, tasksLong := run(tasks, continues, func(*Task) time.Duration { return time.Second })
		if len(f.Path) != int(tasksLong/time.Second) {
			t.Fatalf("a chain of %v, want %v", f.Path, tasksLong)
		}
	})
}

// checkPath wants each task of the chain to begin when the one before it has ended.
func checkPath(t *rapid.T, f *Forecast, s *simulation) {
	var at time.Duration
	for _, i := range f.Path {
		if !s.ran[i] || s.began[i] != at {
			t.Fatalf("task %d of the chain %v begins at %v, not at %v", i, f.Path, s.began[i], at)
		}
		at = s.end[i]
	}
	if at != f.PathTime {
		t.Fatalf("the chain %v ends at %v, not at %v", f.Path, at, f.PathTime)
	}
}

// BenchmarkLook is about a plan as large as a plan file can make one: layers of 1000, ten needs each.
func BenchmarkLook(b *testing.B) {
	tasks := make([]Task, 100_000)
	for i := range tasks {
		tasks[i] = Task{Step: fmt.Sprint("s", i/1000), Program: "p"}
		if i < len(tasks)/2 {
			tasks[i].Phase, tasks[i].Time = Succeeded, time.Duration(i%1000+1)*time.Millisecond
		}
		for k := range min(i/1000, 1) * 10 {
			tasks[i].Needs = append(tasks[i].Needs, task.Need{Index: (i/1000-1)*1000 + (i*7+k*31)%1000})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if f := Look(tasks, task.FailureCancels); len(f.Path) != 50 {
			b.Fatal(len(f.Path))
		}
	}
}
