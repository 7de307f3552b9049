package store_test

import (
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/trace"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// ways are those in which a task ends, from open or running, and in which state.
var ways = []struct {
	name    string
	spec    []string
	running bool
	ends    func(*testing.T, *storetest.Space) statemachine.Move
	want    statemachine.State
	edges   string
}{
	{"settled by its worker", nil, true, reports(true, false), statemachine.Succeeded,
		"running -> executed, executed -> succeeded, succeeded -> archived"},
	{"settled by a server", nil, true, after(reports(false, false), byServer(statemachine.Settle)), statemachine.Succeeded,
		"running -> executed, executed -> succeeded, succeeded -> archived"},
	{"failed", nil, true, after(reports(true, true), byServer(statemachine.Settle)), statemachine.Failed,
		"running -> executed, executed -> failure, failure -> failed, failed -> archived"},
	{"expired", []string{"end_before", noon.Add(second).Text()}, false, byServer(statemachine.Deadline), statemachine.Expired,
		"open -> expired, expired -> archived"},
	{"timed out", []string{"timeout", "1"}, true, byWorker(statemachine.StopOverdue), statemachine.TimedOut,
		"running -> timeout, timeout -> timed_out, timed_out -> archived"},
	{"lost", []string{"max_losses", "0"}, true, byServer(statemachine.Lose), statemachine.Orphaned,
		"running -> orphaned, orphaned -> archived"},
	{"cancelled", nil, false, func(t *testing.T, sp *storetest.Space) statemachine.Move {
		t.Helper()
		return decided(t, &sp.Task(t, 1).Task, statemachine.Cancel, statemachine.Manager, noon)
	}, statemachine.Cancelled, "open -> cancelled, cancelled -> archived"},
}

func reports(settles, failed bool) func(*testing.T, *storetest.Space) statemachine.Move {
	return func(t *testing.T, sp *storetest.Space) statemachine.Move {
		t.Helper()
		given := sp.Task(t, 1).Task
		m, err := statemachine.Decide(&given, statemachine.Occurrence{
			Event: statemachine.Report, Actor: statemachine.Worker, Claim: given.Current.Claim, Round: given.Round, Settles: settles, Failed: failed,
		}, given.Current.Running)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// after makes one move, which does not end the task, before another.
func after(one, other func(*testing.T, *storetest.Space) statemachine.Move) func(*testing.T, *storetest.Space) statemachine.Move {
	return func(t *testing.T, sp *storetest.Space) statemachine.Move {
		t.Helper()
		m := one(t, sp)
		c := tasks.Commit{Move: m, Writer: "w"}
		if m.Failed {
			c.Fields = []string{"0:error", "no"}
		}
		if out := applyAll(t, sp, c); out[0].Result != statemachine.Moved {
			t.Fatalf("%+v", out)
		}
		checkState(t, sp, 1, statemachine.Executed)
		return other(t, sp)
	}
}

func byServer(event statemachine.Event) func(*testing.T, *storetest.Space) statemachine.Move {
	return func(t *testing.T, sp *storetest.Space) statemachine.Move {
		t.Helper()
		return decided(t, &sp.Task(t, 1).Task, event, statemachine.Server, noon.Add(3600*second))
	}
}

func byWorker(event statemachine.Event) func(*testing.T, *storetest.Space) statemachine.Move {
	return func(t *testing.T, sp *storetest.Space) statemachine.Move {
		t.Helper()
		return decided(t, &sp.Task(t, 1).Task, event, statemachine.Worker, noon.Add(3600*second))
	}
}

// TestArchivedAtOnce: whatever ends such a task archives it in the same move, once, with stamps, lines, events, the tally and the
// index of those that may go.
func TestArchivedAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range ways {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			sp.SetClock(t, noon)
			sp.Raw.HSet(t.Context(), sp.Key("meta"), "retention", "1")
			sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, append([]string{"archive", "at_once"}, c.spec...)...) }))
			if c.running {
				if held := sp.Claim(t, "w", 1); len(held) != 1 || !held[0].Task.AtOnce {
					t.Fatalf("claimed %+v", held)
				}
			}
			m := c.ends(t, sp)
			for _, want := range []statemachine.Result{statemachine.Moved, statemachine.Repeated} {
				if out := applyAll(t, sp, tasks.Commit{Move: m, Writer: "w"}); out[0].Result != want || out[0].Err != nil || out[0].Unsettled {
					t.Errorf("%+v, want result %v", out[0], want)
				}
			}
			checkArchivedAtOnce(t, sp, c.want)
			var edges []string
			for line := range strings.Lines(sp.Task(t, 1).Fields["log"]) {
				if _, edge, moved := strings.Cut(strings.TrimSpace(line), "moving task 1: "); moved && edge != "open -> running" {
					edges = append(edges, edge)
				}
			}
			if got := strings.Join(edges, ", "); got != c.edges {
				t.Errorf("log %q, want %q", got, c.edges)
			}
		})
	}
}

func checkArchivedAtOnce(t *testing.T, sp *storetest.Space, outcome statemachine.State) {
	t.Helper()
	checkState(t, sp, 1, statemachine.Archived)
	got := sp.Task(t, 1)
	stamps := storetest.Stamps(got, 0)
	if got.Outcome != outcome || stamps[string(outcome)] == 0 || stamps["archived"] != stamps[string(outcome)] {
		t.Errorf("outcome %s, stamps %v", got.Outcome, stamps)
	}
	if n := sp.Raw.HGet(t.Context(), sp.Key("tally:default"), string(outcome)).Val(); n != "1" {
		t.Errorf("tally %q", n)
	}
	if _, err := sp.Raw.ZScore(t.Context(), sp.Key("archived:"+string(outcome)), "1").Result(); err != nil {
		t.Error(err)
	}
	events, err := sp.Store.Events(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if last := events[len(events)-1]; last.From != outcome || last.To != statemachine.Archived || last.Event != statemachine.Archive {
		t.Errorf("last event %+v", last)
	}
	for _, p := range trace.Check(events) {
		t.Error(p)
	}
}
