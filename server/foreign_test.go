package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// openAsOriginal writes a task exactly as the original's manager does: INCR,
// then the hash and the set in one MULTI. Nobody is woken.
func openAsOriginal(t *testing.T, sp *storetest.Space, change map[string]string) int64 {
	t.Helper()
	id, err := sp.Raw.Incr(t.Context(), sp.Key("task_id")).Result()
	if err != nil {
		t.Fatal(err)
	}
	writeAsOriginal(t, sp, id, change)
	return id
}

func writeAsOriginal(t *testing.T, sp *storetest.Space, id int64, change map[string]string) {
	t.Helper()
	fields := map[string]string{
		"program": "p", "source": "s", "input": "1 2", "id": strconv.FormatInt(id, 10), "start_after": "0",
		"end_before": "inf", "timeout": "inf", "max_fails": "0", "max_timeouts": "0", "state": "open", "round": "0",
		"fails": "0", "timeouts": "0", "log": "", "namespace": sp.Namespace, "0:open": stamp(),
	}
	maps.Copy(fields, change)
	start, _ := strconv.ParseFloat(fields["start_after"], 64)
	_, err := sp.Raw.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.HSet(t.Context(), sp.Key(fmt.Sprint("task:", id)), fields)
		p.ZAdd(t.Context(), sp.Key("open"), redis.Z{Score: start, Member: fmt.Sprint(id)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func stamp() string { return strconv.FormatFloat(float64(time.Now().UnixMicro())/1e6, 'f', 6, 64) }

// moveAsOriginal moves a task as the original does: out of the one set, then
// hash and other set in one MULTI.
func moveAsOriginal(t *testing.T, sp *storetest.Space, id int64, from, to string, fields map[string]string) {
	t.Helper()
	member := fmt.Sprint(id)
	if n := sp.Raw.ZRem(t.Context(), sp.Key(from), member).Val(); n != 1 {
		t.Fatalf("task %d is not in %s", id, from)
	}
	_, err := sp.Raw.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		if to != "archived" {
			p.HSet(t.Context(), sp.Key("task:"+member), "state", to)
		}
		p.HSet(t.Context(), sp.Key("task:"+member), fields)
		p.ZAdd(t.Context(), sp.Key(to), redis.Z{Score: float64(time.Now().UnixMicro()) / 1e6, Member: member})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A foreign task is offered within 2 s although nobody was woken, and its
// deadline is honoured among 10,000 others.
func TestForeignTaskIsAdopted(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	specs := make([]task.Definition, tasks.MaxOpen)
	for i := range specs {
		specs[i] = storetest.Spec(func(s *task.Definition) { storetest.Set(s, "start_after", "4000000000") })
	}
	for range 10 {
		sp.Open(t, specs...)
	}
	woken := func() bool {
		by, err := storetest.Wait(t.Context(), sp.Store, tasks.WaitFor{Worker: "w", Candidates: storetest.Free(task.Bucket{})}, 100*time.Millisecond)
		return err == nil && by != ""
	}
	woken() // by the tasks that start later
	start(t, sp)
	began := time.Now()
	claimable := openAsOriginal(t, sp, nil)
	wait.Eventually(t, 5*time.Second, woken, "nobody is woken for the foreign task")
	wait.Within(t, "adopting a foreign task", began, time.Now(), 2*time.Second)
	tasks := sp.Claim(t, "w", 5)
	if len(tasks) != 1 || tasks[0].Task.ID != claimable || tasks[0].Spec.Input != "1 2" {
		t.Fatalf("claimed %+v, want task %d", tasks, claimable)
	}
	overdue := openAsOriginal(t, sp, map[string]string{"end_before": "1"})
	awaitState(t, sp, overdue, statemachine.Expired, 10*time.Second)
	sp.Report(t, &tasks[0], "ok", "")
	awaitState(t, sp, claimable, statemachine.Succeeded, 5*time.Second)
}

// A worker in another language claims and completes beside our server; its
// claim has no lease, only its timeout.
func TestForeignWorker(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp, fast)
	ids := sp.Open(t, storetest.Spec(), storetest.Spec(func(s *task.Definition) { storetest.Set(s, "timeout", "0.5", "max_timeouts", "1") }))
	for _, id := range ids {
		moveAsOriginal(t, sp, id, "open", "running", map[string]string{"0:running": stamp(), "0:worker": "py"})
	}
	if got := sp.Claim(t, "w", 5); len(got) != 0 {
		t.Fatalf("claimed %+v, which a foreign worker holds", got)
	}
	moveAsOriginal(t, sp, ids[0], "running", "executed", map[string]string{
		"0:output": "33\n", "0:error": "", "0:executed": stamp(),
	})
	awaitState(t, sp, ids[0], statemachine.Succeeded, 5*time.Second)
	awaitState(t, sp, ids[1], statemachine.Open, 10*time.Second)
	checkFields(t, sp, ids[1], map[string]string{"timeouts": "1", "round": "1", "0:timeout": "*"})
	wait.Eventually(t, 5*time.Second, func() bool { return len(sp.Claim(t, "w", 5)) == 1 }, "the task is not offered again")
}

// The original's manager archives without touching the hash's state: the
// archived set wins.
func TestForeignArchive(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp, fast)
	sp.Open(t, storetest.Spec())
	run(t, sp, "")
	awaitState(t, sp, 1, statemachine.Succeeded, 5*time.Second)
	moveAsOriginal(t, sp, 1, "succeeded", "archived", map[string]string{"0:archived": stamp()})
	if task := sp.Task(t, 1); task.State != statemachine.Archived || task.Outcome != statemachine.Succeeded {
		t.Errorf("read as %s with outcome %q", task.State, task.Outcome)
	}
	wait.Eventually(t, 10*time.Second, func() bool {
		return sp.Task(t, 1).Fields["state"] == "archived"
	}, "the hash does not follow the archived set")
	checkState(t, sp, 1, statemachine.Archived)
	checkFields(t, sp, 1, map[string]string{"outcome": "succeeded"})
}

// B1/T1: a foreign client that dies between its two steps loses no task.
func TestForeignCrashBetweenSteps(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp, fast)
	sp.Open(t, storetest.Spec())
	sp.Raw.ZRem(t.Context(), sp.Key("open"), "1")
	if got := sp.Claim(t, "w", 1); len(got) != 0 {
		t.Fatal("claimed a task that a foreign client is moving")
	}
	wait.Eventually(t, 10*time.Second, func() bool { return len(sp.Claim(t, "w", 1)) == 1 }, "the task is lost")
	checkState(t, sp, 1, statemachine.Running)
}

// A disagreement is acted on only when it has lasted.
func TestRepairWaits(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, setting(t, "repair_interval=3"))
	clock := time.Now()
	s.suspects.now = func() time.Time { return clock }
	k := &janitor{Server: s, awaited: map[int64]time.Time{}}
	sp.Open(t, storetest.Spec())
	sp.Raw.ZRem(t.Context(), sp.Key("open"), "1")
	look := func() {
		t.Helper()
		if err := k.inspect(t.Context(), []int64{1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	look()
	clock = clock.Add(2999 * time.Millisecond)
	look()
	if in := sp.Sets(t, 1); len(in) != 0 {
		t.Fatalf("repaired after less than 3 s: %v", in)
	}
	before := s.Stats().Repairs
	clock = clock.Add(time.Millisecond)
	look()
	checkState(t, sp, 1, statemachine.Open)
	if n := s.Stats().Repairs; before != 0 || n != 1 {
		t.Errorf("%d repairs before, %d after it, want 0 and 1", before, n)
	}
}

// An id that is taken first and written later is adopted all the same.
func TestForeignTaskWrittenLate(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp, fast)
	id := sp.Raw.Incr(t.Context(), sp.Key("task_id")).Val()
	wait.Eventually(t, 5*time.Second, func() bool {
		return sp.Raw.HGet(t.Context(), sp.Key("meta"), "adopted").Val() == "1"
	}, "the watermark stays behind")
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "start_after", "4000000000") }))
	writeAsOriginal(t, sp, id, nil)
	wait.Eventually(t, 5*time.Second, func() bool { return len(sp.Claim(t, "w", 1)) == 1 }, "the late task is not offered")
}

// A53, B24: damaged tasks become dead letters, whatever state they are in; the
// server lives and the others go on.
func TestDamagedTasksAreSetAside(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	l := start(t, sp, fast)
	spec := storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", "4000000000") })
	ids := sp.Open(t, spec, spec, spec, spec, spec)
	sp.Raw.Del(t.Context(), sp.Key("task:1"))
	sp.Raw.HSet(t.Context(), sp.Key("task:2"), "round", "two")
	sp.Raw.HDel(t.Context(), sp.Key("task:3"), "state")
	sp.Raw.Del(t.Context(), sp.Key("task:4"))
	sp.Raw.Set(t.Context(), sp.Key("task:4"), "no hash", 0)
	sp.Raw.ZAdd(t.Context(), sp.Key("executed"), zEntry(1, "77"))
	r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{Worker: "w", Request: "r", Candidates: storetest.Free(task.Bucket{}), Max: 9, MaxThreads: task.Unlimited})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tasks) != 1 || r.Tasks[0].Task.ID != ids[4] || len(r.Damaged) != 4 {
		t.Errorf("claimed %+v, damaged %v", r.Tasks, r.Damaged)
	}
	sp.Report(t, &r.Tasks[0], "", "")
	awaitState(t, sp, ids[4], statemachine.Succeeded, 5*time.Second)
	wait.Eventually(t, 15*time.Second, func() bool {
		aside, err := sp.Store.Asides(t.Context())
		return err == nil && len(aside) == 5
	}, "not all damaged tasks are dead letters\n%s", l)
	for _, id := range []int64{1, 2, 3, 4, 77} {
		if in := sp.Sets(t, id); len(in) != 0 {
			t.Errorf("task %d is still listed in %v", id, in)
		}
	}
}

// Who meets a damaged task first tells the server of it, which does not wait for its walk over all tasks.
func TestDamagedTaskIsTold(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, l := newServer(t, sp)
	clock := time.Now()
	s.suspects.now = func() time.Time { return clock }
	k := keeperOf(s)
	ids := sp.Open(t, slices.Repeat([]task.Definition{storetest.Spec()}, 5)...)
	told := func(by string) {
		t.Helper()
		if woken, err := sp.Store.WaitServer(t.Context(), 100*time.Millisecond); !woken || err != nil {
			t.Fatalf("the server is not woken by %s: %v", by, err)
		}
		pass(t, s)
		wait.Receive(t, time.Second, s.suspects.met, "no suspect")
		for range 2 {
			if err := k.inspect(t.Context(), s.suspects.due(), nil); err != nil {
				t.Fatal(err)
			}
			clock = clock.Add(time.Second)
		}
	}
	tasks := sp.Claim(t, "w", 1)
	sp.Raw.Del(t.Context(), sp.Key("task:1"))
	sp.Report(t, &tasks[0], "", "")
	told("a report")
	sp.Raw.Del(t.Context(), sp.Key("task:2"))
	sp.Raw.HDel(t.Context(), sp.Key("task:3"), "round")
	sp.Raw.HDel(t.Context(), sp.Key("task:4"), "input")
	if left := sp.Claim(t, "w", 5); len(left) != 1 || left[0].Task.ID != ids[4] {
		t.Fatalf("claimed %+v, want task %d only", left, ids[4])
	}
	told("a claim")
	if aside, err := sp.Store.Asides(t.Context()); err != nil || len(aside) != 4 {
		t.Errorf("dead letters are %+v, %v; want tasks 1 to 4\n%s", aside, err, l)
	}
	if due := sp.Raw.ZCard(t.Context(), sp.Key("due")).Val(); due != 0 {
		t.Errorf("due lists %d tasks", due)
	}
}

// A dead letter leaves its bucket also where no worker has met it.
func TestDamagedTaskLeavesItsBucket(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp, fast)
	sp.Open(t, storetest.Spec(), storetest.Spec(func(s *task.Definition) { storetest.Set(s, "env", "e") }), storetest.Spec())
	sp.Raw.Del(t.Context(), sp.Key("task:1"))
	sp.Raw.HSet(t.Context(), sp.Key("task:2"), "env", "another", "fails", "many")
	wait.Eventually(t, 10*time.Second, func() bool {
		aside, err := sp.Store.Asides(t.Context())
		return err == nil && len(aside) == 2
	}, "no dead letter")
	for _, key := range sp.Raw.Keys(t.Context(), sp.Key("ready:*")).Val() {
		if in := sp.Raw.ZRange(t.Context(), key, 0, -1).Val(); !slices.Equal(in, []string{"a3"}) {
			t.Errorf("%s lists %v, want task 3 only", key, in)
		}
	}
}

// A task that was damaged and is whole again comes back.
func TestMendedTaskComesBack(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp, fast)
	sp.Open(t, storetest.Spec())
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "fails", "many")
	wait.Eventually(t, 10*time.Second, func() bool { return len(sp.Sets(t, 1)) == 0 }, "no dead letter")
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "fails", "0")
	wait.Eventually(t, 10*time.Second, func() bool { return len(sp.Claim(t, "w", 1)) == 1 }, "not offered again")
	if aside, _ := sp.Store.Asides(t.Context()); len(aside) != 0 {
		t.Errorf("still dead letters: %+v", aside)
	}
}

// Stray entries in several sets are taken back to the one of the hash.
func TestStrayEntries(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp, fast)
	sp.Open(t, storetest.Spec())
	run(t, sp, "")
	awaitState(t, sp, 1, statemachine.Succeeded, 5*time.Second)
	for _, set := range []string{"open", "running", "executed", "failed"} {
		sp.Raw.ZAdd(t.Context(), sp.Key(set), zEntry(1, "1"))
	}
	wait.Eventually(t, 10*time.Second, func() bool { return len(sp.Sets(t, 1)) == 1 }, "not repaired: %v", sp.Sets(t, 1))
	checkState(t, sp, 1, statemachine.Succeeded)
}
