package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// exercise runs the conformance suite: what every Redis that TDF supports must
// do. Each case gets a namespace of its own from space.
func exercise(t *testing.T, space func(testing.TB) *storetest.Space) {
	t.Helper()
	cases := map[string]func(*testing.T, *storetest.Space){
		"open":             exerciseOpen,
		"open again":       exerciseOpenAgain,
		"open refused":     exerciseOpenRefused,
		"newest":           exerciseNewest,
		"claim order":      exerciseClaimOrder,
		"claim again":      exerciseClaimAgain,
		"claim not due":    exerciseClaimNotDue,
		"dry claim":        exerciseDryClaim,
		"hindrances":       exerciseHindrances,
		"buckets":          exerciseBuckets,
		"life of a task":   exerciseLife,
		"illegal move":     exerciseIllegalMove,
		"success":          exerciseSuccess,
		"stale report":     exerciseStaleReport,
		"repeated report":  exerciseRepeatedReport,
		"batch of moves":   exerciseBatch,
		"due":              exerciseDue,
		"wake-ups":         exerciseWakeUps,
		"changes":          exerciseChanges,
		"flush":            exerciseFlush,
		"damage":           exerciseDamage,
		"relist":           exerciseRelist,
		"managers":         exerciseManagers,
		"notes":            exerciseNotes,
		"long log":         exerciseLongLog,
		"long line":        exerciseLongLine,
		"foreign argument": exerciseArgv,
		"held early":       exerciseHeldEarly,
		"ids taken":        exerciseIDsTaken,
		"register":         exerciseRegister,
		"taken name":       exerciseTakenHolding,
		"former tasks":     exerciseFormer,
		"held tasks":       exerciseHeld,
		"known buckets":    exerciseKnownBuckets,
		"registry":         exerciseRegistry,
		"errands":          exerciseErrands,
		"lost":             exerciseLost,
		"lease":            exerciseLease,
		"held elsewhere":   exerciseHeldElsewhere,
		"unwatched":        exerciseUnwatched,
		"clock set back":   exerciseClockSetBack,
		"orders":           exerciseOrders,
		"interrupt":        exerciseInterrupt,
		"follow":           exerciseFollow,
		"chunks":           exerciseChunks,
		"progress":         exerciseProgress,
		"meta":             exerciseMeta,
		"params":           exerciseParams,
		"meta reported":    exerciseMetaReported,
		"drop":             exerciseDrop,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, space(t))
		})
	}
}

// decided asks the table what happens to a task that was read.
func decided(
	t *testing.T, task *statemachine.Task, event statemachine.Event, actor statemachine.Actor, now statemachine.Time,
) statemachine.Move {
	t.Helper()
	m, err := statemachine.Decide(task, statemachine.Occurrence{
		Event: event, Actor: actor, Claim: task.Current.Claim, Round: task.Round,
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func applyAll(t *testing.T, sp *storetest.Space, orders ...tasks.Commit) []tasks.Outcome {
	t.Helper()
	out, err := storetest.Apply(t.Context(), sp.Store, orders...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// moveOn reads a task, decides and applies; the move must be made.
func moveOn(t *testing.T, sp *storetest.Space, id int64, event statemachine.Event, actor statemachine.Actor) {
	t.Helper()
	task := sp.Task(t, id)
	m := decided(t, &task.Task, event, actor, 0)
	if out := applyAll(t, sp, tasks.Commit{Move: m, Writer: string(actor), Bucket: task.Bucket}); out[0].Result != statemachine.Moved {
		t.Fatalf("%s: %+v", event, out[0])
	}
}

func checkState(t *testing.T, sp *storetest.Space, id int64, want statemachine.State) {
	t.Helper()
	if got := sp.Task(t, id).Fields["state"]; got != string(want) {
		t.Errorf("task %d: state %q, want %s", id, got, want)
	}
	if in := sp.Sets(t, id); !slices.Equal(in, []statemachine.State{want}) {
		t.Errorf("task %d: listed in %v, want %s", id, in, want)
	}
}

// Only finite deadlines are indexed, and only while they matter.
func exerciseDue(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	if err := sp.Store.PublishGrace(t.Context(), 2*second); err != nil {
		t.Fatal(err)
	}
	sp.Open(t, storetest.Spec(), storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", noon.Add(50*second).Text()) }),
		storetest.Spec(func(s *task.Definition) { storetest.Set(s, "timeout", "5") }))
	due := func(at statemachine.Time) ([]int64, statemachine.Time) {
		t.Helper()
		sp.SetClock(t, at)
		b, err := sp.Store.Due(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]int64, 0, len(b.Tasks))
		for i := range b.Tasks {
			ids = append(ids, b.Tasks[i].ID)
		}
		return ids, b.Next
	}
	if ids, next := due(noon); len(ids) != 0 || next != noon.Add(50*second) {
		t.Errorf("due %v, next %s", ids, next.Text())
	}
	claimed := sp.Claim(t, "w", 3)
	if ids, next := due(noon.Add(6 * second)); len(ids) != 0 || next != noon.Add(7*second) {
		t.Errorf("due %v, next %s, want timeout and grace", ids, next.Text())
	}
	if ids, _ := due(noon.Add(60 * second)); !slices.Equal(ids, []int64{3, 2}) {
		t.Errorf("due %v, want 3 and 2", ids)
	}
	for i := range claimed {
		sp.Report(t, &claimed[i], "", "")
	}
	if ids, next := due(noon.Add(99 * second)); len(ids) != 0 || next != statemachine.Never {
		t.Errorf("executed tasks are due: %v, next %s", ids, next.Text())
	}
}

func exerciseChanges(t *testing.T, sp *storetest.Space) {
	changes, stop := sp.Store.Watch(t.Context())
	defer stop()
	sp.Open(t, storetest.Spec())
	c := sp.Claim(t, "w", 1)
	sp.Report(t, &c[0], "", "")
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ended := false; ; {
		select {
		case <-changes:
			return
		case <-deadline:
			t.Fatal("no change was announced")
		case <-tick.C: // the subscription may come after the move
			if !ended {
				moveOn(t, sp, 1, statemachine.Settle, statemachine.Server)
			} else {
				sp.Open(t, storetest.Spec())
				next := sp.Claim(t, "w", 1)
				sp.Report(t, &next[0], "", "")
				moveOn(t, sp, next[0].Task.ID, statemachine.Settle, statemachine.Server)
			}
			ended = true
		}
	}
}

// A45, B18/T15: flush takes the namespace's own keys and no other.
func exerciseFlush(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec(), storetest.Spec())
	sp.Claim(t, "w", 1)
	foreign := []string{"x" + sp.Namespace + ":open", sp.Namespace + "x:task_id", sp.Namespace}
	for _, key := range foreign {
		sp.Raw.Set(t.Context(), key, "1", 0)
		t.Cleanup(func() { sp.Raw.Del(t.Context(), key) })
	}
	if n, err := sp.Store.Flush(t.Context()); err != nil || n < 6 {
		t.Errorf("flushed %d keys, error %v", n, err)
	}
	if n := sp.Raw.Exists(t.Context(), foreign...).Val(); n != 3 {
		t.Errorf("%d of 3 foreign keys are left", n)
	}
	if left := sp.Raw.Keys(t.Context(), sp.Key("*")).Val(); !slices.Equal(left, []string{sp.Key("meta")}) { // the history goes on
		t.Errorf("keys left: %v", left)
	}
	if ids := sp.Open(t, storetest.Spec()); ids[0] != 1 {
		t.Errorf("first id after the flush is %d", ids[0])
	}
}

func exerciseDamage(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec())
	sp.Raw.Del(t.Context(), sp.Key("task:1"))
	sp.Raw.HSet(t.Context(), sp.Key("task:2"), "max_fails", "lots")
	if _, err := sp.Store.Task(t.Context(), 1); !errors.Is(err, task.ErrNoTask) {
		t.Errorf("task 1: %v", err)
	}
	if err := sp.Task(t, 2).Err; !errors.Is(err, task.ErrDamaged) {
		t.Errorf("task 2: %v", err)
	}
	r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{Worker: "w", Request: "a", Candidates: storetest.Free(task.Bucket{}), Max: 9})
	if err != nil || !slices.Equal(r.Damaged, []int64{1, 2}) || !slices.Equal(claimedIDs(r.Tasks), []int64{3}) {
		t.Errorf("claimed %+v, error %v", r, err)
	}
	found, now, err := sp.Store.Inspect(t.Context(), []int64{1, 2, 3, 4})
	if err != nil || len(found) != 4 || !found[3].Absent() || found[0].Absent() {
		t.Fatalf("inspected %+v, error %v", found, err)
	}
	setAside := func(what string, i int, at statemachine.Time, want bool) {
		t.Helper()
		if done, err := sp.Store.DeadLetter(t.Context(), &found[i], at); done != want || err != nil {
			t.Errorf("%s: %v, %v", what, done, err)
		}
	}
	setAside("task 1", 0, now, true)
	setAside("task 2", 1, now, true)
	setAside("sent again", 0, now, true)
	setAside("from an old inspection", 0, now.Add(1), false)
	aside, err := sp.Store.Asides(t.Context())
	if err != nil || len(aside) != 2 || len(sp.Sets(t, 1)) != 0 {
		t.Errorf("aside %+v, error %v", aside, err)
	}
}

func exerciseManagers(t *testing.T, sp *storetest.Space) {
	own := fleet.ManagerRecord{Instance: "i1", Name: "my manager"}
	standIn := fleet.ManagerRecord{Instance: "i2", Name: "tdf-manager", Standby: true}
	forced := standIn
	forced.Force = true
	sp.SetClock(t, noon)
	step := func(p fleet.ManagerRecord, want error) {
		t.Helper()
		if err := sp.Store.RegisterManager(t.Context(), p); !errors.Is(err, want) {
			t.Errorf("%s appears: %v, want %v", p.Name, err, want)
		}
	}
	step(standIn, nil)
	step(own, nil)
	step(standIn, conn.ErrManagerAlive)
	step(forced, nil)
	sp.SetClock(t, noon.Add(16*second))
	step(standIn, nil)
	step(own, nil)
	if err := sp.Store.DeregisterManager(t.Context(), own); err != nil {
		t.Error(err)
	}
	step(standIn, nil)
}

// A repair compares the sets as well as the hash: between the two steps of a
// foreign client the hash alone does not change.
func exerciseRelist(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec())
	sp.Raw.ZRem(t.Context(), sp.Key("open"), "1")
	inspect := func() *upkeep.Inspection {
		t.Helper()
		found, _, err := sp.Store.Inspect(t.Context(), []int64{1})
		if err != nil {
			t.Fatal(err)
		}
		return &found[0]
	}
	old := inspect()
	sp.Raw.ZAdd(t.Context(), sp.Key("running"), redis.Z{Score: 1, Member: "1"})
	if done, err := sp.Store.Relist(t.Context(), old, statemachine.Open, noon); done || err != nil {
		t.Errorf("repaired from an old inspection: %v, %v", done, err)
	}
	if in := sp.Sets(t, 1); !slices.Equal(in, []statemachine.State{statemachine.Running}) {
		t.Errorf("listed in %v, want running as the foreign client left it", in)
	}
	if done, err := sp.Store.Relist(t.Context(), inspect(), statemachine.Open, noon); !done || err != nil {
		t.Errorf("not repaired: %v, %v", done, err)
	}
	checkState(t, sp, 1, statemachine.Open)
}
