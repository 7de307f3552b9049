package store_test

import (
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// bothClocks runs a test on Redis and on the embedded one.
func bothClocks(t *testing.T, run func(*testing.T, *storetest.Space)) {
	t.Helper()
	for name, space := range map[string]func(testing.TB) *storetest.Space{
		"redis": func(tb testing.TB) *storetest.Space { return storetest.New(tb) }, "embedded": onEmbedded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, space(t))
		})
	}
}

func ids(tasks []tasks.Claimed) []int64 {
	all := []int64{}
	for i := range tasks {
		all = append(all, tasks[i].Task.ID)
	}
	return all
}

// The clock of Redis steps an hour forward: a worker whose last heartbeat is not from before what a server has watched for a
// whole lease is not lost, nor is one whose own lease is longer than that.
func TestClockStepsUnderLeases(t *testing.T) {
	t.Parallel()
	bothClocks(t, func(t *testing.T, sp *storetest.Space) {
		sp.StepClock(t, noon)
		sp.Register(t, "w")
		sp.StepClock(t, noon.Add(3600*second))
		for _, c := range []struct {
			watched fleet.Watched
			lost    int
		}{
			{fleet.Watched{Span: 15 * second, Until: noon}, 0},
			{fleet.Watched{Span: 14 * second, Until: noon.Add(second)}, 0},
			{fleet.Watched{Span: 15 * second, Until: noon.Add(second)}, 1},
		} {
			l, err := sp.Store.Lost(t.Context(), 9, c.watched)
			if err != nil || len(l.Workers) != c.lost {
				t.Errorf("%+v: %d workers are lost, %v, want %d", c.watched, len(l.Workers), err, c.lost)
			}
		}
	})
}

// The clock of Redis steps back, by half a minute or an hour, or forward and back:
// what waits goes on at once, in its order, and nothing happened before it was opened.
func TestClockStepsBack(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]statemachine.Duration{
		"30 s": {-30 * second}, "an hour": {-3600 * second}, "an hour forward and back": {3600 * second, 0},
		"time and again": {-30 * second, -3600 * second, 60 * second, -60 * second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothClocks(t, func(t *testing.T, sp *storetest.Space) {
				at := noon
				sp.StepClock(t, at)
				want := sp.Open(t, storetest.Spec())
				last := storetest.Stamps(sp.Task(t, want[0]), 0)["open"]
				for _, step := range steps {
					at += 1000
					sp.StepClock(t, at.Add(step))
					id := sp.Open(t, storetest.Spec())[0]
					opened := storetest.Stamps(sp.Task(t, id), 0)["open"]
					if opened < last {
						t.Errorf("task %d is opened %s s before the one before it", id, last.Sub(opened).Text())
					}
					want, last = append(want, id), opened
				}
				got := sp.Claim(t, "w", 10)
				if !slices.Equal(ids(got), want) || got[0].Task.Current.Running < last {
					t.Errorf("claimed %v at %s, want %v", ids(got), got[0].Task.Current.Running.Text(), want)
				}
				for i := range got {
					sp.Report(t, &got[i], "", "")
				}
			})
		})
	}
}

// start_after and end_before mean TIME of Redis, whatever it does; a timeout means how
// long something takes.
func TestClockStepsAbsoluteTimes(t *testing.T) {
	t.Parallel()
	bothClocks(t, func(t *testing.T, sp *storetest.Space) {
		sp.StepClock(t, noon)
		moments := func(start, end statemachine.Duration) task.Definition {
			return storetest.Spec(func(s *task.Definition) {
				storetest.Set(s, "start_after", noon.Add(start).Text(), "end_before", noon.Add(end).Text())
			})
		}
		before := sp.Open(t, moments(10*second, 1000*second), moments(0, 100*second))
		at := func(d statemachine.Duration) { sp.StepClock(t, noon.Add(d)) }
		claimed := func(want ...int64) {
			t.Helper()
			r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
				Worker: "w", Request: conn.NewToken(), Candidates: storetest.Free(task.Bucket{}), Max: 9, MaxThreads: task.Unlimited,
			})
			if err != nil || !slices.Equal(ids(r.Tasks), want) {
				t.Errorf("claimed %v, error %v, want %v", ids(r.Tasks), err, want)
			}
			if len(want) == 0 && (r.Next <= r.Now || r.Next.Sub(r.Now) > 3700*second) {
				t.Errorf("the next start is in %s s", r.Next.Sub(r.Now).Text())
			}
		}
		due := func(want ...int64) {
			t.Helper()
			b, err := sp.Store.Due(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			var over []int64
			for i := range b.Tasks {
				task := &b.Tasks[i]
				if b.Now > task.EndBefore {
					over = append(over, task.ID)
				} else if _, err := sp.Store.Reindex(t.Context(), task, second); err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(over, want) {
				t.Errorf("expired %v, want %v", over, want)
			}
		}
		at(-3600 * second)
		later := sp.Open(t, moments(-3590*second, 1000*second), moments(-3700*second, -3000*second))
		claimed(later[1])
		due()
		at(-3590*second - 1)
		claimed()
		at(-3590 * second)
		claimed(later[0])
		at(-3000 * second)
		due()
		at(-3000*second + 1)
		due(later[1])
		at(10*second - 1)
		claimed(before[1])
		at(10 * second)
		claimed(before[0])
		due(later[1])
		at(100*second + 1)
		due(later[1], before[1])
	})
}

// While TIME goes on the offset shrinks by a twentieth of it, so lengths are longer by at most that,
// and Go reads the same time as the scripts.
func TestClockOffsetShrinks(t *testing.T) {
	t.Parallel()
	bothClocks(t, func(t *testing.T, sp *storetest.Space) {
		sp.StepClock(t, noon)
		sp.Open(t, storetest.Spec())
		back := noon.Add(-100 * second)
		sp.StepClock(t, back)
		sp.Open(t, storetest.Spec())
		for _, c := range []struct{ after, now statemachine.Duration }{
			{0, 0}, {10 * second, 9*second + second/2}, {20 * second, 19 * second}, {2000 * second, 1900 * second}, {2100 * second, 2000 * second},
		} {
			sp.StepClock(t, back.Add(c.after))
			b, err := sp.Store.Due(t.Context(), 1) // reads only
			if err != nil || b.Now != noon.Add(c.now) || b.Redis() != back.Add(c.after) {
				t.Errorf("%s s after the step: %s, %s, error %v", c.after.Text(), b.Now.Text(), b.Redis().Text(), err)
			}
			if c.after == 20*second {
				sp.Open(t, storetest.Spec())
			}
		}
	})
}
