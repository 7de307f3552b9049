package store_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	await "github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// TestRemind: a worker that was woken for a task, or knew when it starts, and does not claim it, keeps
// it from no other.
func TestRemind(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	dead, other := newIdler(t, sp, "dead", "n"), newIdler(t, sp, "other", "n")
	due := storetest.Spec(func(s *task.Definition) { storetest.Set(s, "start_after", noon.Add(10*second).Text()) })
	remind := func(want statemachine.Duration) {
		t.Helper()
		if next, err := sp.Store.Remind(t.Context(), second); next != want || err != nil {
			t.Errorf("the next is late in %d, %v, want %d", next, err, want)
		}
	}
	firstTask(t, sp)
	remind(statemachine.Forever)
	dead.settleDown()
	other.settleDown()
	sp.Open(t, due)
	dead.settleDown() // it knows when the task starts, and is killed
	for _, c := range []struct {
		at    statemachine.Duration
		next  statemachine.Duration
		woken bool
	}{
		{0, 11 * second, false}, {10 * second, second, false}, {11 * second, statemachine.Forever, true},
		{12 * second, statemachine.Forever, true}, // the worker that was woken was killed as well
	} {
		sp.SetClock(t, noon.Add(c.at))
		remind(c.next)
		remind(c.next) // one token, however often
		if got := other.woken(50 * time.Millisecond); got != c.woken || other.woken(time.Millisecond) {
			t.Errorf("%d s later: woken %v", c.at/second, got)
		}
	}
	if other.claim() == nil {
		t.Error("not claimed")
	}
	remind(statemachine.Forever)
	if other.woken(20 * time.Millisecond) {
		t.Error("woken for a task that runs")
	}
}

// firstTask opens and claims a task, so that the list of buckets does not change with the next.
func firstTask(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sp.Open(t, storetest.Spec())
	if got := sp.Claim(t, "first", 1); len(got) != 1 {
		t.Fatal("not claimed")
	}
}

// TestRemindsInBatches: however many buckets there are, each is looked at, and a key of
// another type holds up no other bucket.
func TestRemindsInBatches(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	var specs []task.Definition
	for i := range 600 {
		specs = append(specs, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "priority", strconv.Itoa(i-300)) }))
	}
	for part := range slices.Chunk(specs, 100) {
		sp.Open(t, part...)
	}
	wake := func(i int) string { return sp.Key("wake:" + specs[i].Bucket().Name()) }
	for i := range specs {
		sp.Raw.Del(t.Context(), wake(i))
	}
	ready := sp.Key("ready:" + specs[7].Bucket().Name())
	sp.Raw.Del(t.Context(), ready)
	sp.Raw.Set(t.Context(), ready, "x", 0)
	if _, err := sp.Store.Remind(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for i := range specs {
		if n := sp.Raw.LLen(t.Context(), wake(i)).Val(); (n == 1) != (i != 7) {
			t.Errorf("bucket %d: %d wake-ups", i, n)
		}
	}
}

// TestWaitInParts: a wait that is longer than one command may last is sent as several,
// and a wake-up or an interruption in a later one ends it.
func TestWaitInParts(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	firstTask(t, sp)
	w := newIdler(t, sp, "w", "n")
	w.settleDown()
	blocked := sp.Server.Blocks(t)
	for name, end := range map[string]func(){
		"woken":       func() { sp.Open(t, storetest.Spec()) },
		"interrupted": func() { _ = sp.Store.Interrupt(t.Context(), "w", "r") },
	} {
		woken := make(chan bool, 1)
		go func() { woken <- w.woken(time.Hour) }()
		for range 2 {
			if got := await.Receive(t, time.Minute, blocked, "no wait"); got != "5" {
				t.Errorf("%s: waits %s s", name, got)
			}
		}
		end()
		if got := await.Receive(t, time.Minute, woken, "%s, it waits on", name); got != (name == "woken") {
			t.Errorf("%s: woken %v", name, got)
		}
	}
}
