package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// contender is one who wants to move a task.
type contender struct {
	name  string
	from  []statemachine.State
	actor statemachine.Actor
	event statemachine.Event
}

var contenders = []contender{
	{"claim", []statemachine.State{statemachine.Open}, statemachine.Worker, statemachine.Claim},
	{"expire", []statemachine.State{statemachine.Open, statemachine.Running}, statemachine.Server, statemachine.Deadline},
	{"report", []statemachine.State{statemachine.Running}, statemachine.Worker, statemachine.Report},
	{"timeout by server", []statemachine.State{statemachine.Running}, statemachine.Server, statemachine.Deadline},
	{"stop overdue", []statemachine.State{statemachine.Running}, statemachine.Worker, statemachine.StopOverdue},
	{"lose", []statemachine.State{statemachine.Running}, statemachine.Server, statemachine.Lose},
	{"cancel", []statemachine.State{statemachine.Open, statemachine.Running}, statemachine.Manager, statemachine.Cancel},
	{"settle", []statemachine.State{statemachine.Executed}, statemachine.Server, statemachine.Settle},
	{"archive", []statemachine.State{statemachine.Succeeded}, statemachine.Manager, statemachine.Archive},
}

// raceRounds is how often each pair meets in each state.
const raceRounds = 12

// TestRaces: of those who decided about the same task at the same revision,
// exactly one is applied; each is there twice, as two
// processes would be. One whose event cannot happen in the task's state sends
// its decision nevertheless.
func TestRaces(t *testing.T) {
	t.Parallel()
	for i := range contenders {
		for j := i; j < len(contenders); j++ {
			a, b := &contenders[i], &contenders[j]
			t.Run(a.name+" and "+b.name, func(t *testing.T) {
				t.Parallel()
				sp := storetest.New(t)
				sp.SetClock(t, noon)
				for _, from := range append(append([]statemachine.State{}, a.from...), b.from...) {
					for range raceRounds {
						race(t, sp, from, a, b)
					}
				}
			})
		}
	}
}

func race(t *testing.T, sp *storetest.Space, from statemachine.State, a, b *contender) {
	t.Helper()
	id := bring(t, sp, from)
	before := sp.Task(t, id)
	var won, goesOn atomic.Int64
	var start, end sync.WaitGroup
	start.Add(1)
	for n, c := range []*contender{a, b, a, b} {
		try := c.attempt(t, sp, before, n)
		end.Go(func() {
			start.Wait()
			if moved, more := try(); moved {
				won.Add(1)
				if more {
					goesOn.Add(1)
				}
			}
		})
	}
	start.Done()
	end.Wait()
	after := sp.Task(t, id)
	// A claim is no decision about one revision: it may follow a re-opening. Nor is what
	// a worker does with its round: it may follow a stop that is asked for.
	if want := after.Rev - before.Rev; won.Load() != want || want < 1 || want > 1+goesOn.Load() {
		t.Fatalf("task %d was %s: %d won, the revision rose by %d, log\n%s", id, from, won.Load(), want, after.Fields["log"])
	}
	if in := sp.Sets(t, id); len(in) != 1 || in[0] != after.State {
		t.Fatalf("task %d is %s and listed in %v", id, after.State, in)
	}
	if after.State == statemachine.Open { // out of the way of the next race
		must(t, sp, id, statemachine.Manager, statemachine.Cancel)
	}
}

// bring opens a task and leads it to a state.
func bring(t *testing.T, sp *storetest.Space, to statemachine.State) int64 {
	t.Helper()
	id := sp.Open(t, storetest.Spec(func(s *task.Definition) {
		storetest.Set(s, "end_before", noon.Add(60*second).Text(), "timeout", "5", "max_timeouts", "9", "max_fails", "9")
	}))[0]
	if to == statemachine.Open {
		return id
	}
	c := sp.Claim(t, "w0", 1)
	if to == statemachine.Running {
		return id
	}
	sp.Report(t, &c[0], "out", "")
	if to == statemachine.Executed {
		return id
	}
	must(t, sp, id, statemachine.Server, statemachine.Settle)
	return id
}

// must makes a move that nobody disputes.
func must(t *testing.T, sp *storetest.Space, id int64, actor statemachine.Actor, event statemachine.Event) {
	t.Helper()
	task := sp.Task(t, id)
	m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{Event: event, Actor: actor}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := storetest.Apply(t.Context(), sp.Store, tasks.Commit{Move: m, Writer: "x", Bucket: task.Bucket}); err != nil || out[0].Err != nil {
		t.Fatalf("%+v, %v", out, err)
	}
}

// attempt prepares a contender's call from what the task was. It says whether he had
// his way, and whether another may have his after that.
func (c *contender) attempt(t *testing.T, sp *storetest.Space, before *tasks.TaskHeader, n int) func() (moved, more bool) {
	t.Helper()
	if c.event == statemachine.Claim {
		return func() (bool, bool) {
			r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
				Worker: fmt.Sprint("w", n), Request: conn.NewToken(), Candidates: storetest.Free(task.Bucket{}), Max: 1,
			})
			if err != nil {
				t.Error(err)
			}
			return len(r.Tasks) == 1, false
		}
	}
	m := c.decision(t, before)
	return func() (bool, bool) {
		out, err := storetest.Apply(t.Context(), sp.Store, tasks.Commit{Move: m, Writer: c.name, Bucket: before.Bucket})
		if err != nil {
			t.Error(err)
			return false, false
		}
		return out[0].Result == statemachine.Moved, m.To == statemachine.Open || m.AskStop
	}
}

// decision is what the contender decides, from a state in which he can if he
// cannot from the one the task is in.
func (c *contender) decision(t *testing.T, before *tasks.TaskHeader) statemachine.Move {
	t.Helper()
	task := before.Task
	for _, from := range append([]statemachine.State{task.State}, c.from...) {
		task.State = from
		if task.Current.Claim == "" && c.actor == statemachine.Worker {
			task.Current.Claim = "never given"
		}
		now := noon.Add(30 * second)
		if c.name == "expire" {
			now = noon.Add(90 * second)
		}
		m, err := statemachine.Decide(&task, statemachine.Occurrence{
			Event: c.event, Actor: c.actor, Claim: task.Current.Claim, Round: task.Round,
		}, now)
		if err == nil {
			return m
		}
	}
	t.Fatalf("%s cannot happen from %v", c.name, c.from)
	return statemachine.Move{}
}
