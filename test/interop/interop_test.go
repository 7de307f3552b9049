package interop

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// crowd opens ten thousand tasks that wait for another day.
func crowd(t *testing.T, sp *storetest.Space) {
	t.Helper()
	specs := make([]task.Definition, tasks.MaxOpen)
	for i := range specs {
		specs[i] = storetest.Spec(func(s *task.Definition) { storetest.Set(s, "start_after", "4000000000", "end_before", "4100000000") })
	}
	for range 10 {
		sp.Open(t, specs...)
	}
}

// verify is what `tdf-manager verify` does: everything must add up. What a
// foreign client has just done may still have to be adopted.
func verify(t *testing.T, sp *storetest.Space) {
	t.Helper()
	var report audit.Report
	wait.Eventually(t, patience, func() bool {
		var err error
		if report, err = audit.Verify(t.Context(), sp.Store); err != nil {
			t.Fatal(err)
		}
		return report.OK()
	}, "the namespace does not add up: %s", describe(&report))
}

// describe tells the violations when it is printed, not before.
func describe(r *audit.Report) fmt.Stringer { return violations{r} }

type violations struct{ *audit.Report }

// String implements fmt.Stringer.
func (v violations) String() string { return fmt.Sprintf("%+v", v.Violations) }

// TestForeignManager: nobody is woken for a foreign task, and yet our worker
// claims it within two seconds, among ten thousand others; our server honours
// its end_before within ten.
func TestForeignManager(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newForeigner(t, sp)
	crowd(t, sp)
	startServer(t, sp)
	startWorker(t, sp, "ours")
	id := f.open(t, "input=3 4")
	opened := time.Now()
	wait.Eventually(t, 10*time.Second, func() bool { return sp.Task(t, id).Fields["0:running"] != "" }, "not claimed")
	wait.Within(t, "claiming a foreign task", opened, time.Now(), 2*time.Second)
	await(t, sp, id, statemachine.Succeeded)
	task := sp.Task(t, id)
	if r := task.Fields; r["0:worker"] != "ours" || r["0:output"] != fmt.Sprintf("ours %d 3 4\n", id) {
		t.Errorf("round %v", r)
	}
	soon := statemachine.Time(time.Now().Add(3 * time.Second).UnixMicro()).Text()
	expiring := f.open(t, "start_after=4000000000", "end_before="+soon)
	overdue := f.open(t, "end_before=1")
	await(t, sp, overdue, statemachine.Expired)
	await(t, sp, expiring, statemachine.Expired)
	verify(t, sp)
}

// TestForeignWorker: what a foreign worker hands in is settled; what it never
// hands in comes back after its timeout, and its late result is not taken.
func TestForeignWorker(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newForeigner(t, sp)
	crowd(t, sp)
	startServer(t, sp)
	quick := sp.Open(t, storetest.Spec(), storetest.Spec())
	f.run(t, "work", "theirs")
	for _, id := range quick {
		await(t, sp, id, statemachine.Succeeded)
		if r := sp.Task(t, id).Fields; r["0:worker"] != "theirs" || r["0:output"] != fmt.Sprintf("foreign %d\n", id) {
			t.Errorf("task %d: %+v", id, r)
		}
	}
	slow := sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "timeout", "1", "max_timeouts", "1") }))[0]
	failing := sp.Open(t, storetest.Spec())[0]
	held := [][]string{f.run(t, "claim", "theirs")[0], f.run(t, "claim", "theirs")[0]}
	if number(t, held[0][0]) != slow || number(t, held[1][0]) != failing {
		t.Fatalf("claimed %v, want %d and %d", held, slow, failing)
	}
	f.run(t, "complete", held[1][0], held[1][1], "", "bad")
	await(t, sp, failing, statemachine.Failed)
	await(t, sp, slow, statemachine.Open)
	startWorker(t, sp, "ours")
	await(t, sp, slow, statemachine.Succeeded)
	if _, err := f.try(t, "complete", held[0][0], held[0][1], "late", ""); err == nil || !strings.Contains(err.Error(), "first") {
		t.Errorf("the late result: %v", err)
	}
	task := sp.Task(t, slow)
	if task.Timeouts != 1 || task.Fields["1:worker"] != "ours" || task.Fields["0:output"] != "" {
		t.Errorf("fields %v", task.Fields)
	}
	verify(t, sp)
}

// TestForeignArchive: what a foreign manager has archived is archived, although
// it leaves the hash's state alone.
func TestForeignArchive(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newForeigner(t, sp)
	startServer(t, sp)
	ids := sp.Open(t, storetest.Spec(), storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", "1") }))
	f.run(t, "work", "theirs")
	await(t, sp, ids[0], statemachine.Succeeded)
	await(t, sp, ids[1], statemachine.Expired)
	if lines := f.run(t, "archive"); len(lines) != 2 {
		t.Fatalf("archived %v", lines)
	}
	for i, want := range []statemachine.State{statemachine.Succeeded, statemachine.Expired} {
		task := sp.Task(t, ids[i])
		if task.State != statemachine.Archived || task.Outcome != want {
			t.Errorf("task %d is %s, outcome %s", task.ID, task.State, task.Outcome)
		}
		wait.Eventually(t, patience, func() bool {
			f := sp.Task(t, ids[i]).Fields
			return f["state"] == "archived" && f["outcome"] == string(want)
		}, "the hash of task %d does not follow", ids[i])
	}
	verify(t, sp)
}

// TestMixedCompany: managers and workers of both kinds at once. Ids never
// collide, every task runs once, whoever handed it back before, and everything adds up.
func TestMixedCompany(t *testing.T) {
	t.Parallel()
	const each, families = 40, 3
	sp := storetest.New(t)
	f := newForeigner(t, sp)
	startServer(t, sp)
	startWorker(t, sp, "ours")
	var mu sync.Mutex
	var ids []int64
	var opening sync.WaitGroup
	for range families {
		opening.Go(func() {
			lines, err := f.try(t, "-n", fmt.Sprint(each), "open")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, words := range lines {
				ids = append(ids, number(t, words[0]))
			}
		})
		opening.Go(func() {
			for range each {
				got, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				ids = append(ids, got...)
				mu.Unlock()
			}
		})
	}
	opening.Wait()
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); len(ids) != 2*each*families || n != len(ids) {
		t.Fatalf("%d ids were given out, %d different", len(ids), n)
	}
	wait.Eventually(t, patience, func() bool {
		f.run(t, "work", "theirs")
		counts, err := sp.Store.Count(t.Context())
		return err == nil && counts[statemachine.Succeeded] == int64(len(ids))
	}, "not all tasks succeed")
	byWorker := map[string]int{}
	for _, id := range ids {
		task := sp.Task(t, id)
		of := func(round int, field string) string { return task.Fields[fmt.Sprint(round, ":", field)] }
		for round := range task.Round {
			if of(round, "end") != "hand_back" || of(round, "output") != "" {
				t.Errorf("round %d of task %d: %v", round, id, task.Fields)
			}
		}
		byWorker[of(task.Round, "worker")]++
		if ours := strings.HasPrefix(of(task.Round, "output"), "ours "); ours != (of(task.Round, "worker") == "ours") {
			t.Errorf("task %d: %v", id, task.Fields)
		}
	}
	if byWorker["ours"] == 0 || byWorker["theirs"] == 0 || len(byWorker) != 2 {
		t.Errorf("who worked: %v", byWorker)
	}
	verify(t, sp)
}
