package server

import (
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const noon = statemachine.Time(1_800_000_000_000_000)

// archived opens tasks and brings them into the archive; those whose number odd is true of have failed.
func archived(t *testing.T, sp *storetest.Space, n int, odd func(int) bool) []int64 {
	t.Helper()
	specs := make([]task.Definition, n)
	for i := range specs {
		specs[i] = storetest.Spec()
	}
	ids := sp.Open(t, specs...)
	found := sp.Claim(t, "w", n)
	for i := range found {
		text := ""
		if odd(i) {
			text = "no"
		}
		sp.Report(t, &found[i], "out", text)
	}
	for _, event := range []statemachine.Event{statemachine.Settle, statemachine.Archive} {
		actor := statemachine.Server
		if event == statemachine.Archive {
			actor = statemachine.Manager
		}
		var commits []tasks.Commit
		for _, id := range ids {
			task := sp.Task(t, id)
			m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{Event: event, Actor: actor}, noon)
			if err != nil {
				t.Fatal(err)
			}
			commits = append(commits, tasks.Commit{Move: m, Writer: "x"})
		}
		if _, err := storetest.Apply(t.Context(), sp.Store, commits...); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

func none(int) bool { return false }

// keep keeps succeeded tasks for a minute, and two that have failed.
func keep(o *options) {
	o.ArchiveRetention = []upkeep.Retention{
		{Outcome: statemachine.Succeeded, Age: time.Minute, Most: -1}, {Outcome: statemachine.Failed, Most: 2},
	}
}

// left are the archived tasks that are in Redis.
func left(t *testing.T, sp *storetest.Space) []int64 {
	t.Helper()
	ids, err := sp.Store.IDs(t.Context(), statemachine.Archived, 0, 1000, false)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

// sound lets the auditor look at the namespace.
func sound(t *testing.T, sp *storetest.Space) audit.Account {
	t.Helper()
	r, err := audit.Verify(t.Context(), sp.Store)
	if err != nil || !r.OK() {
		t.Errorf("verify: %+v, %v", r.Violations, err)
	}
	return r.Account
}

// retireAll makes passes until nothing is to go.
func retireAll(t *testing.T, r *purger) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = r.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Tasks go by age and by number, by outcome, also those that were archived before there was a retention.
func TestRetention(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	archived(t, sp, 6, func(i int) bool { return i%2 == 1 })
	sp.SetClock(t, noon.Add(1)) // what is archived at the same time has no order
	archived(t, sp, 4, func(i int) bool { return i%2 == 1 })
	s, _ := newServer(t, sp, setting(t, "archive_retention=succeeded 60s, failed 2"))
	r := newPurger(s)
	retireAll(t, r)
	if ids := left(t, sp); !slices.Equal(ids, []int64{1, 3, 5, 7, 8, 9, 10}) {
		t.Errorf("by number: %v are left", ids)
	}
	sp.SetClock(t, noon.Add(30*statemachine.Second))
	archived(t, sp, 3, none)
	retireAll(t, r)
	sp.SetClock(t, noon.Add(60*statemachine.Second))
	retireAll(t, r)
	if n := len(left(t, sp)); n != 10 {
		t.Errorf("within the minute: %d are left", n)
	}
	sp.SetClock(t, noon.Add(61*statemachine.Second))
	retireAll(t, r)
	if ids := left(t, sp); len(ids) != 5 || !slices.Contains(ids, 11) {
		t.Errorf("by age: %v are left", ids)
	}
	if a := sound(t, sp); a.Purged != 8 || a.Opened != 13 {
		t.Errorf("account: %+v", a)
	}
}

// More tasks than one call takes were archived before there was a retention.
func TestRetentionOfManyOld(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	archived(t, sp, 2*indexBatch+7, none)
	sp.SetClock(t, noon.Add(61*statemachine.Second))
	s, _ := newServer(t, sp, keep)
	retireAll(t, newPurger(s))
	if n := len(left(t, sp)); n != 0 {
		t.Errorf("%d are left", n)
	}
	if from, to, err := sp.Store.KeepIndex(t.Context()); err != nil || from != to {
		t.Errorf("looked at up to %d of %d, %v", from, to, err)
	}
	sound(t, sp)
}

// What a client in another language has archived goes as well: the background pass notes it.
func TestRetentionOfForeignArchives(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	s, _ := newServer(t, sp, keep)
	r := newPurger(s)
	retireAll(t, r)
	id := strconv.FormatInt(archived(t, sp, 1, none)[0], 10)
	sp.Raw.ZRem(t.Context(), sp.Key("archived:succeeded"), id)
	sp.SetClock(t, noon.Add(61*statemachine.Second))
	retireAll(t, r)
	if n := len(left(t, sp)); n != 1 {
		t.Fatalf("%d are left", n)
	}
	if err := keeperOf(s).walk(t.Context()); err != nil {
		t.Fatal(err)
	}
	retireAll(t, r)
	if n := len(left(t, sp)); n != 0 {
		t.Errorf("%d are left", n)
	}
	sound(t, sp)
}

// The background walk passes over what is gone.
func TestWalkPassesOverPurgedTasks(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	s, _ := newServer(t, sp, keep, func(o *options) { o.RepairBatch = 2 })
	r := newPurger(s)
	retireAll(t, r)
	archived(t, sp, 20, none)
	sp.SetClock(t, noon.Add(61*statemachine.Second))
	retireAll(t, r)
	id := sp.Open(t, storetest.Spec(), storetest.Spec())[0]
	sp.Raw.ZRem(t.Context(), sp.Key("ready:default:::0"), "b"+strconv.FormatInt(id, 10))
	if err := keeperOf(s).walk(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := sp.Claim(t, "w", 2); len(got) != 2 {
		t.Errorf("%d of 2 tasks are in line after one step of the walk", len(got))
	}
}

// One step of the walk looks at no more tasks than it was told to.
func TestWalkIsBounded(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, setting(t, "repair_batch=2"))
	for _, id := range sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec(), storetest.Spec(), storetest.Spec()) {
		sp.Raw.ZRem(t.Context(), sp.Key("ready:default:::0"), "a"+strconv.FormatInt(id, 10))
	}
	if err := keeperOf(s).walk(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := sp.Claim(t, "w", 5); len(got) != 2 {
		t.Errorf("%d of 5 tasks are in line after one step of the walk, want 2", len(got))
	}
}

// Two servers that both think it is their turn, cut off from Redis again and again: each task goes once, and each is counted.
func TestRetentionByTwoWhoseRepliesAreLost(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	const n = 300
	archived(t, sp, n, none)
	sp.SetClock(t, noon.Add(61*statemachine.Second))
	var both sync.WaitGroup
	for range 2 {
		s, _ := newServer(t, sp, keep)
		r := newPurger(s)
		r.lease.By = "one" // as if the other had been silent
		proxy := sp.Server.Proxy(t)
		far := *sp
		host, port, _ := net.SplitHostPort(proxy.Addr())
		far.Where.Host = host
		far.Where.Port, _ = strconv.Atoi(port)
		r.store = far.Dial(t)
		both.Go(func() {
			for range 200 {
				drop := proxy.DropReply(redistest.Command("EVALSHA"))
				_, _ = r.pass(t.Context())
				if drop.Happened() && len(left(t, sp)) == 0 {
					return
				}
			}
		})
	}
	both.Wait()
	wait.Eventually(t, time.Minute, func() bool { return len(left(t, sp)) == 0 }, "tasks are left")
	if a := sound(t, sp); a.Purged != n {
		t.Errorf("account: %+v", a)
	}
}

// A reader of a task that is being removed sees all of it, or nothing.
func TestRetentionWhileManagersRead(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	ids := archived(t, sp, 200, none)
	start(t, sp, func(o *options) { o.ArchiveRetention = []upkeep.Retention{{Outcome: statemachine.Succeeded, Most: 10}} })
	wait.Eventually(t, time.Minute, func() bool {
		found, err := sp.Store.TasksByID(t.Context(), ids)
		if err != nil {
			t.Fatal(err)
		}
		there := 0
		for _, task := range found {
			if task == nil {
				continue
			}
			there++
			if task.Err != nil || task.State != statemachine.Archived || task.Fields["0:output"] != "out" {
				t.Fatalf("task %d is there in part: %v", task.ID, task.Fields)
			}
		}
		return there == 10
	}, "tasks do not go")
	sound(t, sp)
}
