package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const epoch = statemachine.Time(1_800_000_000_000_000)

func at(seconds float64) statemachine.Time {
	return epoch + statemachine.Time(seconds*1e6)
}

// run claims the head of the queue and reports it.
func run(t *testing.T, sp *storetest.Space, errText string) *tasks.Claimed {
	t.Helper()
	tasks := sp.Claim(t, "w", 1)
	if len(tasks) != 1 {
		t.Fatalf("claimed %d tasks, want 1", len(tasks))
	}
	if out := sp.Report(t, &tasks[0], "out", errText); out.Result != statemachine.Moved {
		t.Fatalf("report: %v", out)
	}
	return &tasks[0]
}

// A07, A08: stderr decides; max_fails = 0 means one run.
func TestSettleSucceededAndFailed(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	sp.Open(t, storetest.Spec(), storetest.Spec())
	run(t, sp, "")
	run(t, sp, "x")
	if n := pass(t, s); n != 2 {
		t.Errorf("moved %d tasks, want 2", n)
	}
	checkState(t, sp, 1, statemachine.Succeeded)
	checkFields(t, sp, 1, map[string]string{"0:succeeded": "*", "fails": "0", "0:output": "out", "0:error": ""})
	checkState(t, sp, 2, statemachine.Failed)
	checkFields(t, sp, 2, map[string]string{"fails": "1", "round": "0", "0:failure": "*", "0:failed": "*", "1:open": "-"})
	checkLog(t, sp, 2, "open -> running", "running -> executed", "executed -> failure", "failure -> failed")
}

// A09: max_fails = 2 allows three runs; every round keeps its error.
func TestSettleFailsThreeTimes(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "max_fails", "2") }))
	for i := range 3 {
		run(t, sp, fmt.Sprint("error ", i))
		pass(t, s)
	}
	checkState(t, sp, 1, statemachine.Failed)
	checkFields(t, sp, 1, map[string]string{
		"fails": "3", "round": "2", "0:error": "error 0", "1:error": "error 1", "2:error": "error 2",
		"1:open": "*", "2:open": "*", "0:failure": "*", "1:failure": "*", "3:open": "-",
	})
}

// A10: round = fails + timeouts for a task that was opened again.
func TestSettleFailsOnceThenSucceeds(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "max_fails", "1") }))
	run(t, sp, "no")
	pass(t, s)
	run(t, sp, "")
	pass(t, s)
	checkState(t, sp, 1, statemachine.Succeeded)
	checkFields(t, sp, 1, map[string]string{"fails": "1", "round": "1", "0:error": "no", "1:error": ""})
}

// A14: timed out is strict, and a foreign claim gets no grace while ours does.
func TestTimeoutIsStrict(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, setting(t, "timeout_grace=3"))
	sp.SetClock(t, at(0))
	if err := sp.Store.PublishGrace(t.Context(), 3*statemachine.Second); err != nil {
		t.Fatal(err)
	}
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "timeout", "2", "max_timeouts", "1") }))
	sp.Claim(t, "w", 1)
	for _, c := range []struct {
		at   float64
		want statemachine.State
	}{{2, statemachine.Running}, {5, statemachine.Running}, {5.001, statemachine.Open}} {
		sp.SetClock(t, at(c.at))
		pass(t, s)
		checkState(t, sp, 1, c.want)
	}
	checkFields(t, sp, 1, map[string]string{"timeouts": "1", "round": "1", "0:timeout": "*", "1:timeout": "-", "1:open": "*"})
}

// A12, A13: the second timeout ends the task; a frozen worker is refused.
func TestTimeoutByServer(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	sp.SetClock(t, at(0))
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "timeout", "1", "max_timeouts", "1") }))
	frozen := sp.Claim(t, "w1", 1)[0]
	sp.SetClock(t, at(11.5))
	pass(t, s)
	checkState(t, sp, 1, statemachine.Open)
	before := sp.Task(t, 1).Fields
	if out := sp.Report(t, &frozen, "late", ""); out.Result != statemachine.Refused {
		t.Errorf("late report: %+v, want refused", out)
	}
	if after := sp.Task(t, 1).Fields; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("a late report changed the task: %v", after)
	}
	sp.Claim(t, "w2", 1)
	sp.SetClock(t, at(40))
	pass(t, s)
	checkState(t, sp, 1, statemachine.TimedOut)
	checkFields(t, sp, 1, map[string]string{"timeouts": "2", "round": "1", "1:timeout": "*", "1:timed_out": "*"})
}

// A15, A16, A17, A18: expiry by state, strictly, executed tasks by when they
// were executed.
func TestExpiry(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	sp.SetClock(t, at(0))
	until := func(seconds float64) func(*task.Definition) {
		return func(s *task.Definition) { storetest.Set(s, "end_before", at(seconds).Text()) }
	}
	ids := sp.Open(t, storetest.Spec(until(100)), storetest.Spec(until(10)), storetest.Spec(until(10)), storetest.Spec(until(10)))
	early := sp.Claim(t, "w", 2)
	sp.SetClock(t, at(5))
	sp.Report(t, &early[0], "in time", "")
	running := sp.Claim(t, "w", 1)[0]
	sp.SetClock(t, at(10.1))
	sp.Report(t, &early[1], "late", "and failed")
	if got := sp.Claim(t, "w", 1); len(got) != 0 {
		t.Errorf("an overdue task was claimed: %+v", got)
	}
	sp.SetClock(t, at(200))
	pass(t, s)
	checkState(t, sp, ids[0], statemachine.Succeeded)
	checkState(t, sp, ids[1], statemachine.Expired)
	checkFields(t, sp, ids[1], map[string]string{"fails": "0"})
	checkState(t, sp, running.Task.ID, statemachine.Expired)
	if out := sp.Report(t, &running, "late", ""); out.Result != statemachine.Refused {
		t.Errorf("report after expiry: %+v", out)
	}
	checkFields(t, sp, running.Task.ID, map[string]string{"0:output": "-", "0:expired": "*"})
	checkState(t, sp, ids[3], statemachine.Expired)
}

// A19: one timeout, one failure, then success.
func TestMixedRounds(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	sp.SetClock(t, at(0))
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "timeout", "1", "max_timeouts", "1", "max_fails", "1") }))
	sp.Claim(t, "w", 1)
	sp.SetClock(t, at(60))
	pass(t, s)
	run(t, sp, "bad")
	pass(t, s)
	run(t, sp, "")
	pass(t, s)
	checkState(t, sp, 1, statemachine.Succeeded)
	checkFields(t, sp, 1, map[string]string{"fails": "1", "timeouts": "1", "round": "2"})
}

// A24: what became executed is judged as executed, whatever an index says.
func TestExecutedIsNeverTimedOut(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	sp.SetClock(t, at(0))
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "timeout", "1", "max_timeouts", "5") }))
	run(t, sp, "")
	sp.Raw.ZAdd(t.Context(), sp.Key("due"), zEntry(at(1), "1"))
	sp.SetClock(t, at(99))
	if _, _, _, err := s.settleDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkState(t, sp, 1, statemachine.Executed)
	if n := sp.Raw.ZCard(t.Context(), sp.Key("due")).Val(); n != 0 {
		t.Errorf("the index still lists the task")
	}
	pass(t, s)
	checkState(t, sp, 1, statemachine.Succeeded)
}

// A25, A26: all overdue tasks in one pass, however many others wait.
func TestManyOverdueInOnePass(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp)
	sp.SetClock(t, at(0))
	batch := make([]task.Definition, 1000)
	for i := range batch {
		batch[i] = storetest.Spec()
	}
	sp.Open(t, batch...)
	sp.Open(t, batch...)
	for i := range batch {
		storetest.Set(&batch[i], "end_before", at(1).Text())
	}
	sp.Open(t, batch...)
	sp.SetClock(t, at(2))
	if n := pass(t, s); n != 1000 {
		t.Errorf("moved %d tasks, want 1000", n)
	}
	counts, err := sp.Store.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if counts[statemachine.Expired] != 1000 || counts[statemachine.Open] != 2000 {
		t.Errorf("counts %v", counts)
	}
}

// Two servers that judge the same tasks count nothing twice (T12).
func TestTwoServersRace(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start(t, sp, fast)
	start(t, sp, fast, func(o *options) { o.Name = "other" })
	spec := storetest.Spec(func(s *task.Definition) { storetest.Set(s, "max_fails", "3") })
	specs := make([]task.Definition, 50)
	for i := range specs {
		specs[i] = spec
	}
	sp.Open(t, specs...)
	for runs := 0; runs < 4*len(specs); {
		for _, c := range sp.Claim(t, "w", 10) {
			sp.Report(t, &c, "", "always fails")
			runs++
		}
	}
	awaitCount(t, sp, statemachine.Failed, int64(len(specs)))
	for id := int64(1); id <= int64(len(specs)); id++ {
		checkFields(t, sp, id, map[string]string{"fails": "4", "round": "3"})
	}
	if strings.Contains(sp.Task(t, 1).Fields["log"], "lines left out") {
		t.Error("the log of four rounds was cut")
	}
}

// A round that is overdue, by its timeout or by end_before, is left to a worker with a
// lease, which is told until it ends the round. What its worker does not end counts as
// overdue when the lease is over.
func TestOverdueIsLeftToItsWorker(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "timeout", "1", "max_timeouts", "1") }),
		storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", at(5).Text()) }))
	w := register(t, sp.Store, "w", 2)
	told := func(want ...int64) {
		t.Helper()
		r, err := sp.Store.Renew(t.Context(), w.session, fleet.Heartbeat{State: task.WorkerReady})
		slices.Sort(r.Overdue)
		if err != nil || !slices.Equal(r.Overdue, want) || len(r.Stops) != 0 {
			t.Errorf("told %+v, %v, want %v", r, err, want)
		}
	}
	for _, c := range []struct {
		at   float64
		want []int64
	}{{4, nil}, {6, []int64{2}}, {3600, []int64{1, 2}}, {3601.5, []int64{1, 2}}} {
		sp.SetClock(t, at(c.at))
		pass(t, s)
		told(c.want...)
		left := sp.Raw.ZRangeWithScores(t.Context(), sp.Key("due"), 0, -1).Val()
		if err := keeperOf(s).inspect(t.Context(), []int64{1, 2}, nil); err != nil {
			t.Fatal(err)
		}
		if due := sp.Raw.ZRangeWithScores(t.Context(), sp.Key("due"), 0, -1).Val(); !slices.Equal(due, left) {
			t.Errorf("the background walk moves what is left to its worker from %v to %v", left, due)
		}
		checkState(t, sp, 1, statemachine.Running)
		checkState(t, sp, 2, statemachine.Running)
	}
	if out := sp.Report(t, &w.tasks[1], "out", "stopped"); out.Result != statemachine.Moved {
		t.Errorf("report: %+v", out)
	}
	pass(t, s)
	checkState(t, sp, 2, statemachine.Expired)
	checkFields(t, sp, 2, map[string]string{"0:output": "out"})
	told(1)
	sp.SetClock(t, at(3603))
	steadied(t, s)
	pass(t, s)
	checkState(t, sp, 1, statemachine.Open)
	checkFields(t, sp, 1, map[string]string{"timeouts": "1", "losses": "-", "0:class": "time"})
	if n := sp.Raw.Exists(t.Context(), sp.Key("stop:w")).Val(); n != 0 {
		t.Error("a round that is over is still to be stopped")
	}
}
