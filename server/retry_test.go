package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// one is a host on its own, where nothing is judged, and a server.
func one(t *testing.T, change ...func(*task.Definition)) (*farm, *host, *Server) {
	t.Helper()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOff, 1, 1)
	sp.Open(t, storetest.Spec(change...))
	s, _ := judging(t, sp, config.QuarantineOff)
	return f, f.hosts[0], s
}

// fails lets the task fail once, and judges.
func fails(t *testing.T, h *host, s *Server, v verdict) {
	t.Helper()
	if r := h.claim(t); len(r.Tasks) != 1 {
		t.Fatalf("claimed %+v", r)
	}
	h.end(t, v)
	pass(t, s)
}

// After a failure the task rests: 10 s, 20 s, then 30 s, the longest. Nobody
// gets it before.
func TestBackoff(t *testing.T) {
	t.Parallel()
	f, h, s := one(t, func(s *task.Definition) {
		storetest.Set(s, "max_fails", "3", "retry_delay", "10", "retry_backoff", "2", "retry_max_delay", "30")
	})
	for _, rest := range []float64{10, 20, 30} {
		fails(t, h, s, bad)
		checkState(t, f.sp, 1, statemachine.Open)
		checkFields(t, f.sp, 1, map[string]string{"not_before": at(f.now + rest).Text()})
		f.advance(t, rest-1)
		if r := h.claim(t); len(r.Tasks) != 0 || r.Next != at(f.now+1) {
			t.Fatalf("a task that rests was claimed: %+v", r)
		}
		f.advance(t, 1)
	}
	fails(t, h, s, bad)
	checkState(t, f.sp, 1, statemachine.Failed)
	checkFields(t, f.sp, 1, map[string]string{"fails": "4", "round": "3"})
}

// Tasks that fail together do not come back together.
func TestBackoffIsSpread(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOff, 1, 20)
	openMany(t, sp, 20, func(s *task.Definition) {
		storetest.Set(s, "max_fails", "1", "retry_delay", "100", "retry_jitter", "0.5")
	})
	s, _ := judging(t, sp, config.QuarantineOff)
	h := f.hosts[0]
	for h.claim(t); len(h.held) > 0; {
		h.end(t, bad)
	}
	pass(t, s)
	rests := map[string]bool{}
	for id := int64(1); id <= 20; id++ {
		until := sp.Task(t, id).Fields["not_before"]
		rests[until] = true
		if until < at(50).Text() || until > at(100).Text() {
			t.Errorf("task %d rests until %s", id, until)
		}
	}
	if len(rests) < 19 {
		t.Errorf("20 tasks rest until %d moments", len(rests))
	}
}

// The exit code may say that there is no point in trying again.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	coded := func(exit string) verdict { return verdict{class: statemachine.ClassProgram, exit: exit} }
	for name, c := range map[string]struct {
		change func(*task.Definition)
		end    verdict
		want   statemachine.State
	}{
		"fatal":          {func(s *task.Definition) { storetest.Set(s, "fatal_exit_codes", "2,3") }, coded("3"), statemachine.Failed},
		"not fatal":      {func(s *task.Definition) { storetest.Set(s, "fatal_exit_codes", "2,3") }, coded("1"), statemachine.Open},
		"to be retried":  {func(s *task.Definition) { storetest.Set(s, "retry_exit_codes", "75") }, coded("75"), statemachine.Open},
		"not to be":      {func(s *task.Definition) { storetest.Set(s, "retry_exit_codes", "75") }, coded("1"), statemachine.Failed},
		"no exit code":   {func(s *task.Definition) { storetest.Set(s, "retry_exit_codes", "75") }, coded(""), statemachine.Open},
		"nothing is set": {func(*task.Definition) {}, coded("1"), statemachine.Open},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, h, s := one(t, func(s *task.Definition) { storetest.Set(s, "max_fails", "5") }, c.change)
			fails(t, h, s, c.end)
			checkState(t, f.sp, 1, c.want)
			checkFields(t, f.sp, 1, map[string]string{"fails": "1", "faults": "-"})
		})
	}
}

// With charge = program a fault of the fetch or of the host costs no fail, but
// too many end the task; the other classes are charged.
func TestChargeProgram(t *testing.T) {
	t.Parallel()
	for class, fault := range map[statemachine.Class]bool{
		statemachine.ClassFetch: true, statemachine.ClassHost: true, statemachine.ClassInfrastructure: true,
		statemachine.ClassProgram: false, statemachine.ClassMemory: false, statemachine.ClassTime: false,
	} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			f, h, s := one(t, func(s *task.Definition) { storetest.Set(s, "charge", "program", "max_faults", "2") })
			fails(t, h, s, verdict{class: class})
			if !fault {
				checkState(t, f.sp, 1, statemachine.Failed)
				checkFields(t, f.sp, 1, map[string]string{"fails": "1", "faults": "-"})
				return
			}
			fails(t, h, s, verdict{class: class})
			checkState(t, f.sp, 1, statemachine.Open)
			checkFields(t, f.sp, 1, map[string]string{"fails": "0", "faults": "2", "round": "2"})
			fails(t, h, s, verdict{class: class})
			checkState(t, f.sp, 1, statemachine.Failed)
			checkFields(t, f.sp, 1, map[string]string{"fails": "0", "faults": "3", "2:class": string(class)})
		})
	}
}

// askStop asks to stop task 1.
func askStop(t *testing.T, f *farm) {
	t.Helper()
	found, now, err := f.sp.Store.Inspect(t.Context(), []int64{1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := statemachine.Decide(&found[0].Task.Task, statemachine.Occurrence{Event: statemachine.Cancel, Actor: statemachine.Manager}, now)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.sp.Store.AskStop(t.Context(), tasks.Commit{Move: m, Writer: "m"})
	if err != nil || out[0].Result != statemachine.Moved {
		t.Fatalf("stop: %+v, %v", out, err)
	}
}

// A task with a stop request is not opened again, however its round ends.
func TestStopAsked(t *testing.T) {
	t.Parallel()
	free := func(s *task.Definition) {
		storetest.Set(s, "max_fails", "5", "max_timeouts", "5", "max_losses", "5", "timeout", "30")
	}
	for name, c := range map[string]struct {
		end  func(*testing.T, *farm, *Server)
		want statemachine.State
		has  map[string]string
	}{
		"worker lost": {func(t *testing.T, f *farm, s *Server) {
			t.Helper()
			f.silence(t, s, 100)
		}, statemachine.Terminated, map[string]string{"losses": "-"}},
		"overdue and lost": {func(t *testing.T, f *farm, s *Server) {
			t.Helper()
			f.silence(t, s, 50)
		}, statemachine.TimedOut, map[string]string{"timeouts": "1", "0:class": "time"}},
		"handed back": {func(t *testing.T, f *farm, _ *Server) {
			t.Helper()
			m := &f.hosts[0].held[0]
			m.Task.StopAsked = true
			f.hosts[0].back(t)
		}, statemachine.Terminated, map[string]string{"releases": "-"}},
		"failed": {func(t *testing.T, f *farm, _ *Server) {
			t.Helper()
			f.hosts[0].end(t, bad)
		}, statemachine.Failed, map[string]string{"fails": "1"}},
		"succeeded": {func(t *testing.T, f *farm, _ *Server) {
			t.Helper()
			f.hosts[0].end(t, good)
		}, statemachine.Succeeded, map[string]string{"fails": "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, h, s := one(t, free)
			if name == "worker lost" { // no deadline comes first
				f.sp.Raw.HSet(t.Context(), f.sp.Key("task:1"), "timeout", "inf")
			}
			h.claim(t)
			askStop(t, f)
			c.end(t, f, s)
			pass(t, s)
			checkState(t, f.sp, 1, c.want)
			checkFields(t, f.sp, 1, c.has)
		})
	}
}

// A stop that is asked for after the report keeps the failed task from being
// opened again.
func TestStopAskedOfExecuted(t *testing.T) {
	t.Parallel()
	f, h, s := one(t, func(s *task.Definition) { storetest.Set(s, "max_fails", "5") })
	h.claim(t)
	h.end(t, bad)
	askStop(t, f)
	pass(t, s)
	checkState(t, f.sp, 1, statemachine.Failed)
	checkFields(t, f.sp, 1, map[string]string{"fails": "1", "round": "0"})
}

// A round that the server ends has the class of its end.
func TestServerSaysClass(t *testing.T) {
	t.Parallel()
	f, h, s := one(t, func(s *task.Definition) { storetest.Set(s, "timeout", "30", "max_timeouts", "1") })
	h.claim(t)
	f.silence(t, s, 50)
	pass(t, s)
	checkFields(t, f.sp, 1, map[string]string{"state": "open", "0:class": "time", "0:error": "-"})
	join(t, f.sp, "other", 1).claim(t)
	f.sp.Raw.HSet(t.Context(), f.sp.Key("task:1"), "timeout", "inf")
	f.sp.Raw.Del(t.Context(), f.sp.Key("due"))
	f.silence(t, s, 100)
	pass(t, s)
	checkFields(t, f.sp, 1, map[string]string{"losses": "1", "1:class": "infrastructure", "1:error": "-"})
}

// So has one whose end ends the task, whatever is counted; what did not run, and
// what a worker has reported, gets no class.
func TestServerSaysClassOfLastRound(t *testing.T) {
	t.Parallel()
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		f, h, s := one(t, func(s *task.Definition) { storetest.Set(s, "end_before", at(100).Text()) })
		f.sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", at(100).Text()) }))
		h.claim(t)
		f.silence(t, s, 200)
		pass(t, s)
		checkFields(t, f.sp, 1, map[string]string{"state": "expired", "0:class": "time", "timeouts": "0"})
		checkFields(t, f.sp, 2, map[string]string{"state": "expired", "0:class": "-"})
	})
	t.Run("stopped and lost", func(t *testing.T) {
		t.Parallel()
		f, h, s := one(t, func(s *task.Definition) { storetest.Set(s, "max_losses", "3") })
		h.claim(t)
		askStop(t, f)
		f.silence(t, s, 100)
		pass(t, s)
		checkFields(t, f.sp, 1, map[string]string{"state": "terminated", "0:class": "infrastructure", "losses": "-"})
	})
}
