package store_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

func isHandlingLost(err error) bool { return errors.Is(err, conn.ErrHandlingLost) }

// take asks for tasks 1 to 3.
func take(t *testing.T, sp *storetest.Space, instance string) map[int64]int64 {
	t.Helper()
	answer, _ := takeCall(instance, []int64{1, 2, 3}, nil)(t, sp.Store).must(t).(taken)
	return answer.Granted
}

// others is what the manager j sees of others, by a clock of its own.
type others struct {
	fleet.HandlingWatch
	own time.Time
}

func watching() *others {
	o := &others{own: time.Now()}
	o.Now = func() time.Time { return o.own }
	return o
}

// keep lets time pass on j's own clock, and renews its lease.
func (o *others) keep(t *testing.T, sp *storetest.Space, d time.Duration) {
	t.Helper()
	o.own = o.own.Add(d)
	if err := sp.Store.KeepHandling(t.Context(), handlingOf("j"), &o.HandlingWatch); err != nil {
		t.Fatal(err)
	}
}

// TestHandling: a task is one living manager's; of one that was watched to be silent
// everything is another's, and its own decision to archive is refused.
func TestHandling(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	handled(t, sp)
	before := sp.Task(t, 1)
	beginHandlingCall("j")(t, sp.Store).must(t)
	if got := take(t, sp, "j"); len(got) != 0 {
		t.Errorf("granted %v beside a living manager", got)
	}
	o := watching()
	o.keep(t, sp, 0)
	isHandled(t, sp, before)
	sp.SetClock(t, noon.Add(5*second))
	keepCall("i")(t, sp.Store).must(t)
	o.keep(t, sp, 15*time.Second) // i has renewed its lease just before it is over, and is watched from now on
	isHandled(t, sp, before)
	o.keep(t, sp, 14*time.Second)
	if got := take(t, sp, "j"); len(got) != 0 {
		t.Errorf("granted %v before the lease is over", got)
	}
	if next := o.Next(5 * time.Second); next != time.Second {
		t.Errorf("looks again in %v, want when the lease is over", next)
	}
	o.keep(t, sp, time.Second)
	late := archiveCall("i", tasks.TakeRequest{Ask: []int64{1}}, 1)(t, sp.Store)
	if got := take(t, sp, "j"); !maps.Equal(got, map[int64]int64{1: before.Rev}) {
		t.Errorf("granted %v, want task 1 with revision %d, which a grant leaves as it is", got, before.Rev)
	}
	if got, _ := late.must(t).(taken); !got.Lost {
		t.Errorf("the former holder archives and takes: %+v, want that its lease is lost", got)
	}
	if _, err := keepCall("i")(t, sp.Store)(); !isHandlingLost(err) {
		t.Errorf("the former holder renews: %v", err)
	}
	isHandled(t, sp, before)
	archiveCall("j", tasks.TakeRequest{}, 1)(t, sp.Store).must(t)
	if got := sp.Task(t, 1); got.State != statemachine.Archived || got.Rev != before.Rev+1 {
		t.Errorf("the holder has not archived the task: %s, revision %d", got.State, got.Rev)
	}
	if got := take(t, sp, "j"); len(got) != 0 {
		t.Errorf("granted %v in the archive", got)
	}
}

// isHandled checks that task 1 is archived neither by a manager without a lease nor by one that does not have it, however right
// state and revision are.
func isHandled(t *testing.T, sp *storetest.Space, before *tasks.TaskHeader) {
	t.Helper()
	beginHandlingCall("k")(t, sp.Store).must(t)
	for instance, want := range map[string]error{"": conn.ErrHandled, "k": statemachine.ErrConflict} {
		reply, err := sp.Store.Take(t.Context(), &tasks.TakeRequest{Instance: instance, Archive: []statemachine.Move{archiving(t, before)}})
		if err != nil || !errors.Is(reply.Archived[0].Err, want) || !errors.Is(reply.Archived[0].Err, statemachine.ErrConflict) {
			t.Errorf("%q archives what another manager handles: %+v, %v", instance, reply.Archived, err)
		}
	}
	if err := sp.Store.EndHandling(t.Context(), handlingOf("k")); err != nil {
		t.Fatal(err)
	}
}

// TestHeldButGone: a lease is no right to a task whose entry is not there any more, or is another's.
func TestHeldButGone(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *storetest.Space){
		"deleted": func(t *testing.T, sp *storetest.Space) { t.Helper(); sp.Raw.HDel(t.Context(), sp.Key("handling"), "1") },
		"another's": func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			sp.Raw.HSet(t.Context(), sp.Key("handling"), "1", "j")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			handled(t, sp)
			archive := archiveCall("i", tasks.TakeRequest{}, 1)(t, sp.Store)
			lose(t, sp)
			if got, _ := archive.must(t).(taken); got.Lost || len(got.Refused) != 1 {
				t.Errorf("archived: %+v", got)
			}
			checkState(t, sp, 1, statemachine.Succeeded)
		})
	}
}

// TestArchiveFence: the holder of a task archives it once, and only as it was read.
func TestArchiveFence(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	handled(t, sp)
	task := sp.Task(t, 1)
	for name, change := range map[string]func(*statemachine.Move){
		"round":    func(m *statemachine.Move) { m.Round++ },
		"revision": func(m *statemachine.Move) { m.Rev++ },
		"state":    func(m *statemachine.Move) { m.From = statemachine.Failed },
	} {
		takeCall("i", []int64{1}, nil)(t, sp.Store).must(t) // each attempt gives it back
		m := archiving(t, task)
		change(&m)
		reply, err := sp.Store.Take(t.Context(), &tasks.TakeRequest{Instance: "i", Archive: []statemachine.Move{m}})
		if err != nil || !errors.Is(reply.Archived[0].Err, statemachine.ErrConflict) {
			t.Errorf("another %s: %+v, %v", name, reply.Archived, err)
		}
		if sp.Raw.HExists(t.Context(), sp.Key("handling"), "1").Val() {
			t.Errorf("another %s: the task is still held", name)
		}
	}
	checkState(t, sp, 1, statemachine.Succeeded)
	takeCall("i", []int64{1}, nil)(t, sp.Store).must(t)
	for _, want := range []statemachine.Result{statemachine.Moved, statemachine.Repeated} {
		reply, err := sp.Store.Take(t.Context(), &tasks.TakeRequest{Instance: "i", Archive: []statemachine.Move{archiving(t, task)}})
		if err != nil || reply.Archived[0].Result != want {
			t.Errorf("%+v, %v; want %v", reply.Archived, err, want)
		}
	}
	checkState(t, sp, 1, statemachine.Archived)
	if _, err := sp.Store.Take(t.Context(), &tasks.TakeRequest{Archive: []statemachine.Move{{ID: 1, To: statemachine.Open}}}); err == nil {
		t.Error("a move that does not archive is taken")
	}
	if _, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: archiving(t, task)}); err == nil {
		t.Error("a task is archived without a look at who has it")
	}
}

// TestHandlingClockSteps: no step of the clock of Redis ends the lease of a manager, or
// makes that of a dead one last longer.
func TestHandlingClockSteps(t *testing.T) {
	t.Parallel()
	bothClocks(t, func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		sp.StepClock(t, noon)
		handled(t, sp)
		beginHandlingCall("j")(t, sp.Store).must(t)
		o := watching()
		for _, step := range []statemachine.Duration{3600 * second, -3600 * second} {
			o.keep(t, sp, 0)
			sp.StepClock(t, noon.Add(step))
			o.keep(t, sp, 10*time.Second)
			if got := take(t, sp, "j"); len(got) != 0 {
				t.Errorf("granted %v after a step of %s s beside a living manager", got, step.Text())
			}
			isHandled(t, sp, sp.Task(t, 1))
			sp.StepClock(t, noon.Add(step+10*second))
			keepCall("i", 1)(t, sp.Store).must(t)
		}
		o.keep(t, sp, 0)
		o.keep(t, sp, 15*time.Second)
		if got := take(t, sp, "j"); len(got) != 1 {
			t.Errorf("granted %v of a manager that was silent for its lease, want its task", got)
		}
	})
}

// TestHandlingLength: a manager watches another's lease for as long as that one lasts,
// not its own.
func TestHandlingLength(t *testing.T) {
	t.Parallel()
	for _, length := range []time.Duration{1500 * time.Millisecond, 40 * time.Second} {
		sp, o := storetest.New(t), watching()
		if err := sp.Store.BeginHandling(t.Context(), fleet.NewHandling(length), &fleet.HandlingWatch{}); err != nil {
			t.Fatal(err)
		}
		beginHandlingCall("j")(t, sp.Store).must(t)
		o.keep(t, sp, 0)
		o.keep(t, sp, length-time.Millisecond)
		if left := sp.Raw.HLen(t.Context(), sp.Key("handling")).Val(); left != 2 {
			t.Errorf("a lease of %v is over too early", length)
		}
		o.keep(t, sp, time.Millisecond)
		if left := sp.Raw.HLen(t.Context(), sp.Key("handling")).Val(); left != 1 {
			t.Errorf("a lease of %v is not over in time", length)
		}
	}
}

// TestHandlingOutage: a lease counts on after Redis was away for longer, as long as
// nobody ended it.
func TestHandlingOutage(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	handled(t, sp)
	sp.SetClock(t, noon.Add(40*second))
	keepCall("i", 1)(t, sp.Store).must(t)
	if got := take(t, sp, "i"); len(got) != 1 {
		t.Errorf("granted %v, want task 1 again", got)
	}
}

// TestHandlingLeavesNothing: what managers handled is gone with their leases.
func TestHandlingLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*testing.T, *storetest.Space){
		"ended":    func(t *testing.T, sp *storetest.Space) { t.Helper(); endHandlingCall(t, sp.Store).must(t) },
		"replaced": func(t *testing.T, sp *storetest.Space) { t.Helper(); beginHandlingCall("j", "i")(t, sp.Store).must(t) },
		"silent": func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			beginHandlingCall("j")(t, sp.Store).must(t)
			sweepCall(t, sp.Store).must(t)
		},
		"not mine": func(t *testing.T, sp *storetest.Space) { t.Helper(); lostHandlingCall(t, sp.Store).must(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			sp.SetClock(t, noon)
			handled(t, sp)
			leave(t, sp)
			left := sp.Raw.HGetAll(t.Context(), sp.Key("handling")).Val()
			delete(left, "@j")
			if len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestHandlingLimit(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	_, err := sp.Store.Take(t.Context(), &tasks.TakeRequest{Instance: "i", Outcome: statemachine.Succeeded, Ask: make([]int64, 1001)})
	if err == nil || isHandlingLost(err) {
		t.Errorf("1001 tasks in one call: %v", err)
	}
}
