package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func allLost(t *testing.T, sp *storetest.Space) fleet.Lost {
	t.Helper()
	l, err := sp.Store.Lost(t.Context(), 100, fleet.Watched{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func lostNames(l fleet.Lost) []string {
	all := make([]string, 0, len(l.Workers))
	for i := range l.Workers {
		all = append(all, l.Workers[i].Name)
	}
	return all
}

// A worker whose heartbeat is older than the lease is dead: what it holds is
// handed over with the verdict, and from then on it can do nothing.
func exerciseLost(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	if l := allLost(t, sp); len(l.Workers) != 0 || l.Next != statemachine.Never || l.Now != noon {
		t.Errorf("lost %+v", l)
	}
	w, idle := sp.Register(t, "w"), sp.Register(t, "idle")
	sp.Open(t, storetest.Spec(), storetest.Spec())
	sp.SetClock(t, noon.Add(second))
	sp.ClaimUnder(t, w, 2) // counts as a heartbeat
	sp.SetClock(t, noon.Add(15*second))
	if l := allLost(t, sp); len(l.Workers) != 0 || l.Next != noon.Add(15*second) {
		t.Errorf("lost %+v, though no lease is over", l)
	}
	sp.SetClock(t, noon.Add(16*second))
	if l := allLost(t, sp); !slices.Equal(lostNames(l), []string{"idle"}) || l.Next != noon.Add(16*second) {
		t.Errorf("lost %+v, want the idle one", l)
	}
	sp.SetClock(t, noon.Add(16*second+1))
	exerciseVerdict(t, sp, w, idle)
}

// exerciseVerdict goes on where w is lost with two tasks, and idle without any.
func exerciseVerdict(t *testing.T, sp *storetest.Space, w, idle fleet.Session) {
	t.Helper()
	for range 2 { // until they are moved
		l := allLost(t, sp)
		if !slices.Equal(lostNames(l), []string{"w"}) || len(l.Workers[0].Tasks) != 2 || l.Workers[0].Silent != 15*second+1 ||
			l.Workers[0].Incarnation != 1 || l.Workers[0].Err != nil {
			t.Fatalf("lost %+v, want w with two tasks", l)
		}
	}
	for _, gone := range []fleet.Session{w, idle} {
		if _, err := sp.Store.Renew(t.Context(), gone, fleet.Heartbeat{}); !errors.Is(err, conn.ErrLeaseLost) {
			t.Errorf("%s renews: %v", gone.Name, err)
		}
		if err := sp.Store.Leave(t.Context(), gone); !errors.Is(err, conn.ErrLeaseLost) {
			t.Errorf("%s leaves: %v", gone.Name, err)
		}
	}
	exerciseTakeBack(t, sp)
}

// exerciseTakeBack goes on where w is fenced and still holds two tasks.
func exerciseTakeBack(t *testing.T, sp *storetest.Space) {
	t.Helper()
	one, err := sp.Store.Lost(t.Context(), 1, fleet.Watched{})
	if err != nil || len(one.Workers[0].Tasks) != 2 || one.Workers[0].Tasks[0].ID != 2 {
		t.Fatalf("lost %+v, error %v, want all that w has slots for, the last claim first", one, err)
	}
	for l := allLost(t, sp); len(l.Workers[0].Tasks) > 0; l = allLost(t, sp) {
		loseTask(t, sp, &l.Workers[0].Tasks[0])
	}
	if l := allLost(t, sp); len(l.Workers) != 0 {
		t.Errorf("still lost: %+v", l)
	}
	info, _, err := sp.Store.Worker(t.Context(), "w")
	if err != nil || info.State != task.WorkerLost || info.Ended.IsZero() || !info.Heartbeat.Equal(task.Moment(noon)) || len(info.Tasks) != 0 {
		t.Errorf("worker %+v, error %v", info, err)
	}
}

// The lease is what the server has published, but never shorter than what the
// worker was told, because it relies on that. A heartbeat counts as long as nobody
// has given the lease up.
func exerciseLease(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	if lease, err := sp.Store.Lease(t.Context()); lease != 15*second || err != nil {
		t.Errorf("lease %s, error %v", lease.Text(), err)
	}
	w := sp.Register(t, "w")
	if err := sp.Store.PublishLease(t.Context(), 2*second+second/2); err != nil {
		t.Fatal(err)
	}
	if err := sp.Store.PublishLease(t.Context(), 0); err == nil {
		t.Error("a lease of no length is published")
	}
	if lease, err := sp.Store.Lease(t.Context()); lease != 2*second+second/2 || err != nil {
		t.Errorf("lease %s, error %v", lease.Text(), err)
	}
	sp.SetClock(t, noon.Add(10*second))
	if l := allLost(t, sp); len(l.Workers) != 0 || l.Next != noon.Add(15*second) {
		t.Errorf("lost %+v, though w was told 15 s", l)
	}
	if r := sp.Renew(t, w); r.Lease != 2*second+second/2 || r.Now != noon.Add(10*second) {
		t.Errorf("renewed %+v", r)
	}
	sp.SetClock(t, noon.Add(60*second))
	sp.Renew(t, w)
	if l := allLost(t, sp); len(l.Workers) != 0 {
		t.Errorf("lost %+v", l)
	}
	sp.SetClock(t, noon.Add(63*second))
	if l := allLost(t, sp); len(l.Workers) != 1 {
		t.Errorf("lost %+v, want w", l)
	}
}

// A foreign client may take a task away that a worker holds; a damaged one is
// set aside. Neither keeps the worker's name, and damage of its own keys is said.
func exerciseHeldElsewhere(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	w := sp.Register(t, "w")
	sp.Open(t, storetest.Spec(), storetest.Spec())
	sp.ClaimUnder(t, w, 2)
	ctx := t.Context()
	sp.Raw.ZRem(ctx, sp.Key("running"), "1")
	sp.Raw.HSet(ctx, sp.Key("task:1"), "state", "executed")
	sp.Raw.ZAdd(ctx, sp.Key("executed"), redis.Z{Score: 1, Member: "1"})
	sp.Raw.HSet(ctx, sp.Key("task:2"), "fails", "many")
	found, now, err := sp.Store.Inspect(ctx, []int64{2})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := sp.Store.DeadLetter(ctx, &found[0], now); !done || err != nil {
		t.Fatal(done, err)
	}
	sp.Register(t, "x")
	sp.Raw.RPush(ctx, sp.Key("held:x"), "damage")
	sp.SetClock(t, noon.Add(16*second))
	l := allLost(t, sp)
	if len(l.Workers) != 2 || len(l.Workers[0].Tasks) != 0 || l.Workers[0].Err != nil || !errors.Is(l.Workers[1].Err, task.ErrDamaged) {
		t.Errorf("lost %+v", l)
	}
	if l = allLost(t, sp); len(l.Workers) != 1 || l.Workers[0].Name != "x" || sp.Raw.Exists(ctx, sp.Key("held:w")).Val() != 0 {
		t.Errorf("lost %+v", l)
	}
}

// Nothing runs for ever because an index was damaged by hand.
func exerciseUnwatched(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	w := sp.Register(t, "w")
	sp.Open(t, storetest.Spec(), storetest.Spec())
	sp.ClaimUnder(t, w, 1)
	sp.Claim(t, "foreign", 1)
	look := func() []upkeep.Inspection {
		t.Helper()
		found, _, err := sp.Store.Inspect(t.Context(), []int64{1, 2})
		if err != nil || found[1].Unwatched || found[1].Abandoned {
			t.Fatalf("inspected %+v, error %v", found, err)
		}
		return found
	}
	if i := look()[0]; i.Unwatched || i.Abandoned {
		t.Errorf("inspected %+v", i)
	}
	reindex := func(what string, want bool) {
		t.Helper()
		i := look()[0]
		if changed, err := sp.Store.Reindex(t.Context(), &i.Task, second); changed != want || err != nil {
			t.Errorf("%s: reindexed %v, %v, want %v", what, changed, err, want)
		}
	}
	for _, key := range []string{"held:w", "lease", "worker:w"} {
		sp.Raw.Del(t.Context(), sp.Key(key))
		matters := key != "worker:w"
		if i := look()[0]; i.Unwatched != matters {
			t.Errorf("without %s: %+v", key, i)
		}
		reindex("without "+key, matters)
		reindex("again", false)
	}
	sp.SetClock(t, noon.Add(16*second))
	l := allLost(t, sp)
	if len(l.Workers) != 1 || len(l.Workers[0].Tasks) != 1 {
		t.Fatalf("lost %+v", l)
	}
	sp.Raw.Del(t.Context(), sp.Key("held:w"))
	sp.Raw.HSet(t.Context(), sp.Key("worker:w"), "incarnation", "7")
	if i := look()[0]; !i.Abandoned || i.Unwatched {
		t.Errorf("inspected %+v", i)
	}
	reindex("registered anew", false)
}

// The time of the namespace goes on when the clock is set back: a worker that dies
// then is lost one lease later, and has not been lost earlier. What the caller has not
// watched long enough is no silence, whatever the clock says.
func exerciseClockSetBack(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	w := sp.Register(t, "w")
	sp.Open(t, storetest.Spec())
	sp.ClaimUnder(t, w, 1)
	earlier := noon.Add(-7200 * second)
	sp.StepClock(t, earlier)
	for range 2 {
		if l := allLost(t, sp); len(l.Workers) != 0 || l.Now != noon || l.Next != noon.Add(15*second) {
			t.Errorf("lost %+v", l)
		}
	}
	sp.StepClock(t, earlier.Add(16*second))
	for _, watched := range []fleet.Watched{{Span: 15 * second, Until: noon}, {Span: 14 * second, Until: noon.Add(second)}} {
		l, err := sp.Store.Lost(t.Context(), 100, watched)
		if err != nil || len(l.Workers) != 0 || (l.Longest != 0) != (watched.Span < 15*second) {
			t.Errorf("lost %+v, error %v, watched %+v", l, err, watched)
		}
	}
	l, err := sp.Store.Lost(t.Context(), 100, fleet.Watched{Span: 15 * second, Until: noon.Add(1)})
	if err != nil || len(l.Workers) != 1 || len(l.Workers[0].Tasks) != 1 {
		t.Errorf("lost %+v, error %v, want w and its task", l, err)
	}
}
