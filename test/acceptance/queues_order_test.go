package acceptance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// D21: of the tasks of a queue, the oldest is claimed first, or the newest.
func TestFifoAndLifo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	p := w.script(t, "p", "true")
	ids := map[string][]int64{}
	for _, name := range []string{"fifo", "lifo"} {
		w.queue(t, name, "order="+name)
		p.Queue = name
		ids[name] = slices.Concat(w.open(t, times(6, p)...), w.open(t, p), w.open(t, p)) // some at the same moment
	}
	w.node(t, "n1", "slots=1")
	for name, want := range ids {
		got := order(w.ended(t, want, sm.Succeeded))
		if name == "lifo" {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: claimed in the order %v, want %v", name, got, want)
		}
	}
	checkTurns(t, order(w.ended(t, slices.Concat(ids["fifo"], ids["lifo"]), sm.Succeeded)), ids, 3)
}

// checkTurns checks that each queue had at least every nth turn as long as it had
// tasks: n is the number of queues, the default one too.
func checkTurns(t *testing.T, turns []int64, queues map[string][]int64, n int) {
	t.Helper()
	for name, ids := range queues {
		passed, left := 0, len(ids)
		for _, id := range turns {
			if passed++; slices.Contains(ids, id) {
				passed, left = 0, left-1
			}
			if passed >= n && left > 0 {
				t.Errorf("claimed in the order %v: queue %s is passed over %d times", turns, name, passed)
				return
			}
		}
	}
}

// prioritised opens a task of each priority, all at the same moment.
func (w *world) prioritised(t *testing.T, p task.Spec, priorities ...int) []int64 {
	t.Helper()
	specs := make([]task.Spec, len(priorities))
	for i, n := range priorities {
		specs[i] = p
		specs[i].Priority = &n
	}
	return w.open(t, specs...)
}

// Without aging the highest priority is claimed first, and within one the oldest.
func TestStrictPriority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	w.queue(t, "q", "aging=0")
	p := w.script(t, "p", "true")
	p.Queue = "q"
	ids := slices.Concat(w.prioritised(t, p, 0, 7, -3, 1000), w.prioritised(t, p, 7, 0))
	w.node(t, "n1", "slots=1")
	want := []int64{ids[3], ids[1], ids[4], ids[0], ids[5], ids[2]}
	if got := order(w.ended(t, ids, sm.Succeeded)); !slices.Equal(got, want) {
		t.Errorf("claimed in the order %v, want %v", got, want)
	}
}

// With aging, a task of priority p is overtaken by one of priority p+d only if that
// one became due less than d times aging after it; until then it is.
func TestAgingBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	const aging = sm.Second
	w.queue(t, "q", "aging=1")
	p := w.script(t, "p", "true")
	p.Queue = "q"
	old := w.prioritised(t, p, 0, 1)
	first := storetest.Stamps(w.Task(t, old[1]), 0)["open"]
	w.passed(t, first, 2*aging)
	ids := slices.Concat(old, w.prioritised(t, p, 1, 2, 1000))
	w.node(t, "n1", "slots=1")
	tasks := w.ended(t, ids, sm.Succeeded)
	for _, a := range tasks {
		for _, b := range tasks {
			checkOvertaking(t, a, b, aging)
		}
	}
	// Of the old ones, that of priority 0 has caught up with 2 and not with 1000.
	if got, want := order(tasks), []int64{ids[4], ids[1], ids[0], ids[3], ids[2]}; !slices.Equal(got, want) {
		t.Errorf("claimed in the order %v, want %v", got, want)
	}
}

// checkOvertaking checks the bound for a that was claimed before b, which was due earlier.
func checkOvertaking(t *testing.T, a, b *tasks.TaskHeader, aging sm.Duration) {
	t.Helper()
	due, claimed := storetest.Stamps(a, 0)["open"], storetest.Stamps(a, 0)["running"]
	later := due.Sub(storetest.Stamps(b, 0)["open"])
	if claimed >= storetest.Stamps(b, 0)["running"] || later <= 0 {
		return
	}
	d := priority(a) - priority(b)
	if later >= sm.Duration(d)*aging {
		t.Errorf("task %d, due %s s later and of a priority higher by %d, has overtaken task %d", a.ID, later.Text(), d, b.ID)
	}
}

func priority(t *tasks.TaskHeader) int {
	var n int
	_, _ = fmt.Sscan(t.Fields["priority"], &n) // there is none if it is 0
	return n
}
