package worker

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// cpus makes a task take that many slots.
func cpus(n int) func(*task.Definition) {
	return func(s *task.Definition) {
		storetest.SetBucket(s, task.Bucket{Resources: task.Resources{task.CPUs: n}.Text()})
	}
}

// A task that asks for two cpus has two slots: of three, one is left for another task.
func TestWideTasks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := t.TempDir()
	p := s.script(t, "p", gate+`; echo $TDF_RESOURCE_CPUS $TDF_RESOURCE_CPUS_IDS`)
	wide, small := s.open(t, p, input(dir), cpus(2)), s.open(t, p, input(dir))
	later := []int64{s.open(t, p, input(dir), cpus(2)), s.open(t, p, input(dir), cpus(3))}
	w := s.start(t, func(o *options) { o.Slots = 3 })
	wait.Eventually(t, patience, func() bool { return atGate(t, dir) == 2 && w.busy() == 3 }, "two tasks do not run in three slots")
	for _, id := range later {
		if state := s.Task(t, id).State; state != sm.Open {
			t.Errorf("task %d is %s", id, state)
		}
	}
	touch(t, dir+"/release")
	checkFields(t, s.await(t, wide, sm.Executed), map[string]string{"0:output": "done\n2\n", "0:resources": "cpus:2[]"})
	checkFields(t, s.await(t, small, sm.Executed), map[string]string{"0:output": "done\n\n", "0:resources": "-"})
	for i, id := range later {
		checkFields(t, s.await(t, id, sm.Executed), map[string]string{"0:output": []string{"done\n2\n", "done\n3\n"}[i]})
	}
	wait.Eventually(t, patience, func() bool { return w.pool.count(idle) == 3 }, "a slot was not given back")
}

// A wide task whose queue has its turn is not overtaken by small ones that are always there: never are both slots free at a time, as long
// as none is kept.
func TestWideTaskGetsSlots(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.AddQueue(t, task.ParseQueue("q", nil))
	var mu sync.Mutex
	var order []string
	var w *running
	began := func(name string) int {
		mu.Lock()
		defer mu.Unlock()
		if name != "" {
			order = append(order, name)
		}
		return len(order)
	}
	gathering := func() bool {
		w.claims.mu.Lock()
		defer w.claims.mu.Unlock()
		return w.claims.gathers != ""
	}
	const many = 60
	ready := make(chan struct{})
	do := map[string]Handler{
		"small": func(ctx context.Context, _ *Job) error {
			<-ready
			at := began("small")
			for at < many && began("") == at && !gathering() {
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		},
		"wide": func(_ context.Context, j *Job) error {
			began(strings.Repeat("wide", j.Resources[task.CPUs].Count))
			return nil
		},
	}
	for range many {
		s.open(t, forHandler("small"))
	}
	wide := s.open(t, forHandler("wide"), func(d *task.Definition) {
		storetest.SetBucket(d, task.Bucket{Queue: "q", Class: "wide", Resources: "cpus=2"})
	})
	w = s.start(t, handlers(do), func(o *options) { o.Slots = 2 })
	close(ready)
	s.await(t, wide, sm.Executed)
	mu.Lock()
	defer mu.Unlock()
	if at := slices.Index(order, "widewide"); at < 0 || at > many/2 {
		t.Errorf("it began as number %d of %v", at, order)
	}
}

// A slot that is stuck is none for a task that takes several: the others are not kept for it, until it is free again.
func TestStuckSlotsAreNotGathered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	release := make(chan struct{})
	quick := func(context.Context, *Job) error { return nil }
	w := s.start(t, func(o *options) { o.Slots, o.KillGrace = 2, 50*time.Millisecond }, handlers(map[string]Handler{
		"stuck": func(context.Context, *Job) error { <-release; return nil }, "quick": quick, "wide": quick,
	}))
	s.await(t, s.open(t, forHandler("stuck"), limits("1", "0")), sm.TimedOut)
	w.log.await(t, "the slot is stuck")
	wide := s.open(t, forHandler("wide"), func(d *task.Definition) {
		storetest.SetBucket(d, task.Bucket{Class: "wide", Resources: "cpus=2"})
	})
	s.await(t, s.open(t, forHandler("quick")), sm.Executed)
	close(release)
	s.await(t, wide, sm.Executed)
}

// A slot that becomes free between a claim that found too few and the wait behind it ends that wait.
func TestSlotsFreeBeforeTheWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.idleWorker(t, s.Store, 2)
	w.rounds = t.Context()
	w.lease.begin(s.Register(t, "w"), shim.Now())
	defer w.lease.stop()
	s.open(t, cpus(2))
	if _, err := w.rules.current(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.use(t.Context(), &ClaimReply{Wider: true, Full: []string{task.DefaultQueue}}, newClock(0), w.lease.last().Incarnation, 1, nil)
	got, _, _ := w.wait(t.Context(), w.lull, w.lease.last().Incarnation, 2)
	if len(got.Reply.Tasks) > 0 {
		t.Error("it has waited to the end, and claimed then")
	}
}
