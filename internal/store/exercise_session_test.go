package store_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// B21/T16: one name, one number, however often it comes; each time another
// incarnation. Disbatch: a second node of the same name is refused.
func exerciseRegister(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	a, b := sp.Register(t, "a"), sp.Register(t, "b")
	if a.ID != 1 || b.ID != 2 || a.Incarnation != 1 || a.Lease != fleet.DefaultLease*second || a.Order != task.NoCommand {
		t.Errorf("sessions %+v, %+v", a, b)
	}
	if again := sp.Register(t, "a"); again != a {
		t.Errorf("the same process registers again as %+v, was %+v", again, a)
	}
	exerciseTaken(t, sp, a)
	for _, bad := range []task.Registration{{Identity: "i"}, {Name: "n"}} {
		if _, err := sp.Store.Register(t.Context(), bad); err == nil {
			t.Errorf("registered %+v", bad)
		}
	}
}

// The same name after a crash gets what it held, and has to put it in order
// before its first claim.
func exerciseFormer(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	old := sp.Register(t, "w")
	sp.Open(t, storetest.Spec(), storetest.Spec())
	found := sp.ClaimUnder(t, old, 2)
	next := storetest.Registration("w")
	next.Identity, next.Replaces = "next", old.Incarnation
	sp.SetClock(t, noon.Add(second))
	r, err := sp.Store.Register(t.Context(), next)
	if err != nil || len(r.Former) != 2 || r.Former[1].ID != 1 || r.Former[0].Worker != "w" || r.Former[0].Incarnation != 1 {
		t.Fatalf("registered %+v, error %v", r, err)
	}
	if beat := sp.Raw.ZScore(t.Context(), sp.Key("lease"), "w").Val(); beat != float64(noon/1e6) {
		t.Errorf("the fenced session has a heartbeat at %f", beat)
	}
	if _, err := sp.Store.Renew(t.Context(), old, fleet.Heartbeat{}); !errors.Is(err, conn.ErrLeaseLost) {
		t.Errorf("the old session renews: %v", err)
	}
	_, err = sp.Store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Request: "late", Candidates: storetest.Free(task.Bucket{}), Max: 1, Incarnation: old.Incarnation,
	})
	if !errors.Is(err, conn.ErrLeaseLost) {
		t.Errorf("the old session claims: %v", err)
	}
	sp.Report(t, &found[0], "done", "")
	loseTask(t, sp, &r.Former[0])
	if r, err = sp.Store.Register(t.Context(), next); err != nil || len(r.Former) != 0 || r.Incarnation != 2 || r.ID != old.ID {
		t.Errorf("registered %+v, error %v", r, err)
	}
	checkState(t, sp, 1, statemachine.Executed)
	checkState(t, sp, 2, statemachine.Open)
	if got := sp.ClaimUnder(t, r.Session, 9); len(got) != 1 || got[0].Task.Losses != 1 {
		t.Errorf("claimed %+v", got)
	}
}

// loseTask takes a task from its worker, as it was seen.
func loseTask(t *testing.T, sp *storetest.Space, seen *tasks.TaskHeader) {
	t.Helper()
	m := decided(t, &seen.Task, statemachine.Lose, statemachine.Server, 0)
	if out := applyAll(t, sp, tasks.Commit{Move: m, Writer: "s", Bucket: seen.Bucket}); out[0].Result != statemachine.Moved {
		t.Fatalf("lose: %+v", out[0])
	}
}

// What is claimed under a session is known as held until it leaves running,
// and its record says who ran it and where.
func exerciseHeld(t *testing.T, sp *storetest.Space) {
	w := sp.Register(t, "w")
	sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec())
	found := sp.ClaimUnder(t, w, 2)
	held := func() []string {
		t.Helper()
		ids := sp.Raw.SMembers(t.Context(), sp.Key("held:w")).Val()
		slices.Sort(ids)
		return ids
	}
	f := sp.Task(t, 1).Fields
	if got := held(); !slices.Equal(got, []string{"1", "2"}) || f["0:incarnation"] != "1" || f["0:node"] != "node-1" {
		t.Errorf("held %v, fields %v", got, f)
	}
	sp.Claim(t, "w", 1) // without a session
	if err := sp.Store.Leave(t.Context(), w); !errors.Is(err, conn.ErrHolding) || !strings.Contains(err.Error(), "2 tasks") {
		t.Errorf("leaves with tasks: %v", err)
	}
	info, _, err := sp.Store.Worker(t.Context(), "w")
	if err != nil || !slices.Equal(info.Tasks, []int64{1, 2}) {
		t.Errorf("worker %+v, error %v", info, err)
	}
	sp.Report(t, &found[0], "", "")
	moveOn(t, sp, 2, statemachine.Lose, statemachine.Server)
	if got := held(); len(got) != 0 {
		t.Errorf("held %v", got)
	}
	for range 2 {
		if err := sp.Store.Leave(t.Context(), w); err != nil {
			t.Error(err)
		}
	}
	if _, err := sp.Store.Renew(t.Context(), w, fleet.Heartbeat{}); !errors.Is(err, conn.ErrLeaseLost) {
		t.Errorf("renews after it has left: %v", err)
	}
	if info, _, _ = sp.Store.Worker(t.Context(), "w"); info.State != task.WorkerStopped || info.Ended.IsZero() {
		t.Errorf("worker %+v", info)
	}
	if next := sp.Register(t, "w"); next.Incarnation != 2 {
		t.Errorf("registered %+v", next)
	}
}

// A worker is told when there are buckets that it does not know.
func exerciseKnownBuckets(t *testing.T, sp *storetest.Space) {
	w := sp.Register(t, "w")
	fresh := func(known int64) bool {
		t.Helper()
		r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
			Worker: "w", Request: conn.NewToken(), Candidates: storetest.Free(task.Bucket{}), Max: 1, Incarnation: w.Incarnation, Known: known,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.NewBuckets
	}
	rules := func() fleet.Rules {
		t.Helper()
		r, err := sp.Store.Rules(t.Context(), "node-1")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := rules()
	if !slices.Equal(first.Buckets, []task.Bucket{{}}) || fresh(first.Known) || !fresh(first.Known-1) {
		t.Errorf("rules %+v, want the default bucket", first)
	}
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, task.Bucket{Labels: "gpu=1,zone=a"}) }))
	if !fresh(first.Known) {
		t.Error("a new bucket is not told")
	}
	sp.Raw.SAdd(t.Context(), sp.Key("buckets"), "no name")
	if all := rules(); len(all.Buckets) != 3 || !slices.Contains(all.Buckets, task.Bucket{Labels: "gpu=1,zone=a"}) || fresh(all.Known) {
		t.Errorf("rules %+v", all)
	}
}

// Disbatch: registration and heartbeat object; orders of an operator.
func exerciseRegistry(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	if _, err := sp.Store.CommandWorker(t.Context(), "w", task.CommandDrain); !errors.Is(err, task.ErrNoWorker) {
		t.Errorf("ordered a worker that is not there: %v", err)
	}
	if all, _, err := sp.Store.Workers(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("workers %+v, error %v", all, err)
	}
	w := sp.Register(t, "w")
	sp.Register(t, "v")
	sp.Raw.SAdd(t.Context(), sp.Key("worker"), "a foreign one")
	use := []task.QueueUse{{Class: "*", Queue: "default", Threads: 2, Idle: 1, Processing: 1}}
	sp.SetClock(t, noon.Add(second))
	beat := fleet.Heartbeat{State: task.WorkerDraining, Reason: "disk", Busy: 1, Stuck: 1, Queues: use}
	if _, err := sp.Store.Renew(t.Context(), w, beat); err != nil {
		t.Fatal(err)
	}
	all, now, err := sp.Store.Workers(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != "v" || now != noon.Add(second) {
		t.Fatalf("workers %+v at %s, error %v", all, now.Text(), err)
	}
	want := task.Worker{
		Registration: storetest.Registration("w"), ID: 1, Incarnation: 1, State: task.WorkerDraining, Reason: "disk",
		Started: task.Moment(noon), Heartbeat: task.Moment(now), Busy: 1, Stuck: 1, Queues: use, Tasks: []int64{},
	}
	if !reflect.DeepEqual(all[1], want) {
		t.Errorf("worker %+v, want %+v", all[1], want)
	}
	text := `{"datetime":"2027-01-15T08:00:01Z","pid":42,"queues":[{"class":"*","queue":"default","threads":2,"idle":1,"processing":1}]}`
	if beat := sp.Raw.HGet(t.Context(), sp.Key("worker:w"), "heartbeat").Val(); beat != text {
		t.Errorf("heartbeat %s, want %s", beat, text)
	}
}

// exerciseTaken lets another process come for the name a. The clock alone frees
// no name: Redis may have been away, and the holder alive all the time.
func exerciseTaken(t *testing.T, sp *storetest.Space, a fleet.Session) {
	t.Helper()
	sp.SetClock(t, noon.Add(15*second))
	other := storetest.Registration("a")
	other.Identity = "another process"
	_, err := sp.Store.Register(t.Context(), other)
	var taken *fleet.NameTakenError
	if !errors.As(err, &taken) || !errors.Is(err, conn.ErrNameTaken) || taken.Silent != 15*second || taken.Holder.PID != 42 {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{`"a"`, "process 42", "host.example", "node-1", "15s ago", "stop it, give this worker another name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	sp.SetClock(t, noon.Add(60*second))
	other.Replaces = a.Incarnation + 1
	_, err = sp.Store.Register(t.Context(), other)
	if !errors.As(err, &taken) || taken.Silent != 60*second || taken.Lease != 15*second || taken.Holder.Incarnation != a.Incarnation {
		t.Errorf("after a minute of silence: %v", err)
	}
	if again := sp.Register(t, "a"); again != a {
		t.Errorf("the same process registers again as %+v, was %+v", again, a)
	}
	exerciseFreed(t, sp, a, other)
}

// exerciseFreed goes on with a server's verdict on a, which frees the name.
func exerciseFreed(t *testing.T, sp *storetest.Space, a fleet.Session, other task.Registration) {
	t.Helper()
	allLost(t, sp)
	next, err := sp.Store.Register(t.Context(), other)
	if err != nil || next.ID != 1 || next.Incarnation != 2 {
		t.Errorf("after the verdict: %+v, error %v", next, err)
	}
	if _, err := sp.Store.Renew(t.Context(), a, fleet.Heartbeat{}); !errors.Is(err, conn.ErrLeaseLost) {
		t.Errorf("the former session renews: %v", err)
	}
	sp.Raw.ZRem(t.Context(), sp.Key("lease"), "a") // by hand
	other.Identity = "a third process"
	if next, err = sp.Store.Register(t.Context(), other); err != nil || next.Incarnation != 3 {
		t.Errorf("without an entry in the list of leases: %+v, error %v", next, err)
	}
}

// A worker that holds tasks keeps its name and them through an outage of Redis,
// however long that was by the clock, and whichever worker comes for the name.
func exerciseTakenHolding(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	w := sp.Register(t, "w")
	sp.Open(t, storetest.Spec())
	task := sp.ClaimUnder(t, w, 1)[0]
	sp.SetClock(t, noon.Add(60*second))
	other := storetest.Registration("w")
	other.Identity = "on another host"
	if r, err := sp.Store.Register(t.Context(), other); !errors.Is(err, conn.ErrNameTaken) || len(r.Former) != 0 {
		t.Errorf("registered %+v, error %v, want the name to be taken", r, err)
	}
	sp.Renew(t, w)
	if out := sp.Report(t, &task, "done", ""); out.Result != statemachine.Moved {
		t.Errorf("report: %+v", out)
	}
	if err := sp.Store.Leave(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	sp.Raw.ZAdd(t.Context(), sp.Key("lease"), redis.Z{Score: 1, Member: "w"}) // by hand
	if r, err := sp.Store.Register(t.Context(), other); err != nil || r.Incarnation != 2 {
		t.Errorf("after it has left: %+v, error %v", r, err)
	}
}
