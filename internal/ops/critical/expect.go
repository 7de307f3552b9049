package critical

import (
	"slices"
	"time"
)

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
