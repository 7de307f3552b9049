package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// sessionRaces is how often a verdict meets each of a worker's calls.
const sessionRaces = 1000

// rival is a call that meets the verdict that its worker is lost. It reports
// whether it had its way.
type rival func(t *testing.T, sp *storetest.Space, w fleet.Session) bool

// TestLongVerdictRaces: a worker whose lease is over by the clock renews, claims,
// or is registered anew, in the same moment in which a server finds it lost.
// Exactly one of them succeeds.
func TestLongVerdictRaces(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]rival{"renew": raceRenew, "claim": raceClaim} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			wins := 0
			for i := range sessionRaces {
				w := overdueSession(t, sp, i)
				held := len(sp.ClaimUnder(t, w, 1))
				sp.Open(t, storetest.Spec())
				sp.SetClock(t, noon.Add(statemachine.Duration(i+1)*100*second+16*second))
				won, lost := meet(t, sp, w, r)
				if won == lost {
					t.Fatalf("round %d: the worker had its way: %v, the server: %v", i, won, lost)
				}
				if won {
					wins++
				}
				takeBack(t, sp, w.Name, held)
			}
			t.Logf("the worker won %d of %d", wins, sessionRaces)
		})
	}
}

// overdueSession registers a worker whose lease ends before the next race.
func overdueSession(t *testing.T, sp *storetest.Space, i int) fleet.Session {
	t.Helper()
	sp.SetClock(t, noon.Add(statemachine.Duration(i+1)*100*second))
	if i == 0 {
		sp.Open(t, storetest.Spec())
	}
	return sp.Register(t, fmt.Sprint("w", i))
}

// meet lets a worker's call and the verdict start together.
func meet(t *testing.T, sp *storetest.Space, w fleet.Session, r rival) (won, lost bool) {
	t.Helper()
	var start, end sync.WaitGroup
	start.Add(1)
	end.Go(func() {
		start.Wait()
		won = r(t, sp, w)
	})
	end.Go(func() {
		start.Wait()
		l, err := sp.Store.Lost(t.Context(), 10, fleet.Watched{})
		if err != nil {
			t.Error(err)
		}
		for i := range l.Workers {
			lost = lost || l.Workers[i].Name == w.Name
		}
	})
	start.Done()
	end.Wait()
	return won, lost
}

func raceRenew(t *testing.T, sp *storetest.Space, w fleet.Session) bool {
	t.Helper()
	_, err := sp.Store.Renew(t.Context(), w, fleet.Heartbeat{State: task.WorkerReady})
	return hadItsWay(t, err)
}

func raceClaim(t *testing.T, sp *storetest.Space, w fleet.Session) bool {
	t.Helper()
	_, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: w.Name, Request: conn.NewToken(), Candidates: storetest.Free(task.Bucket{}), Max: 1, Incarnation: w.Incarnation,
	})
	return hadItsWay(t, err)
}

func hadItsWay(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, conn.ErrLeaseLost) {
		t.Error(err)
	}
	return err == nil
}

// takeBack moves all that a worker holds, as a server does, and cancels it.
func takeBack(t *testing.T, sp *storetest.Space, worker string, atLeast int) {
	t.Helper()
	info, _, err := sp.Store.Worker(t.Context(), worker)
	if err != nil || len(info.Tasks) < atLeast {
		t.Fatalf("worker %+v, error %v: want it to hold %d tasks", info, err, atLeast)
	}
	for _, id := range info.Tasks {
		must(t, sp, id, statemachine.Server, statemachine.Lose)
		must(t, sp, id, statemachine.Manager, statemachine.Cancel)
	}
}

// TestLongRegisterRaces: a successor of a worker whose lease is over comes for its
// name in the moment in which a server finds it lost. One that knows nothing is
// refused until the verdict; one that knows the worker to be dead gets its tasks
// as the server does. Either way each task is taken back once, and the old
// session can do nothing any more, whichever was first.
func TestLongRegisterRaces(t *testing.T) {
	t.Parallel()
	for name, knows := range map[string]bool{"knows nothing": false, "replaces": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			refused := 0
			for i := range sessionRaces {
				if raceSuccessor(t, sp, i, knows) {
					refused++
				}
			}
			t.Logf("the name was taken in %d of %d", refused, sessionRaces)
			if knows == (refused > 0) {
				t.Errorf("refused %d times before the verdict; knows that the holder is dead: %v", refused, knows)
			}
		})
	}
}

// raceSuccessor is one race. It reports whether the successor was refused first.
func raceSuccessor(t *testing.T, sp *storetest.Space, i int, knows bool) (refused bool) {
	t.Helper()
	old := overdueSession(t, sp, i)
	task := sp.ClaimUnder(t, old, 1)[0]
	sp.SetClock(t, noon.Add(statemachine.Duration(i+1)*100*second+16*second))
	next := storetest.Registration(old.Name)
	next.Identity = "next"
	if knows {
		next.Replaces = old.Incarnation
	}
	n, refused := meetSuccessor(t, sp, next, i%2 == 0)
	if n != 1 {
		t.Fatalf("round %d: the task was taken back %d times", i, n)
	}
	if _, err := sp.Store.Renew(t.Context(), old, fleet.Heartbeat{}); !errors.Is(err, conn.ErrLeaseLost) {
		t.Fatalf("round %d: the old session renews: %v", i, err)
	}
	r, err := sp.Store.Register(t.Context(), next)
	if err != nil || len(r.Former) != 0 || r.Incarnation != old.Incarnation+1 {
		t.Fatalf("round %d: registered %+v, error %v", i, r, err)
	}
	if err := sp.Store.Leave(t.Context(), r.Session); err != nil {
		t.Fatal(err)
	}
	if i%2 == 1 { // below max_losses
		must(t, sp, task.Task.ID, statemachine.Manager, statemachine.Cancel)
		sp.Open(t, storetest.Spec())
	}
	return refused
}

// meetSuccessor lets a registration and the verdict start together, one of them
// with a better chance to be first. It counts how often a task was taken back.
func meetSuccessor(t *testing.T, sp *storetest.Space, next task.Registration, ahead bool) (moved int, refused bool) {
	t.Helper()
	var start, end sync.WaitGroup
	var bySuccessor, byServer int
	start.Add(1)
	register := func() {
		start.Wait()
		r, err := sp.Store.Register(t.Context(), next)
		if refused = errors.Is(err, conn.ErrNameTaken); !refused {
			bySuccessor = loseAll(t, sp, r.Former, err)
		}
	}
	judge := func() {
		start.Wait()
		l, err := sp.Store.Lost(t.Context(), 10, fleet.Watched{})
		for i := range l.Workers {
			byServer += loseAll(t, sp, l.Workers[i].Tasks, err)
		}
	}
	if ahead { // who is started last runs first, mostly
		register, judge = judge, register
	}
	end.Go(register)
	end.Go(judge)
	start.Done()
	end.Wait()
	return bySuccessor + byServer, refused
}

// loseAll takes tasks back as they were seen and counts the moves.
func loseAll(t *testing.T, sp *storetest.Space, found []tasks.TaskHeader, err error) int {
	t.Helper()
	if err != nil {
		t.Error(err)
		return 0
	}
	n := 0
	for i := range found {
		m, err := statemachine.Decide(&found[i].Task, statemachine.Occurrence{
			Event: statemachine.Lose, Actor: statemachine.Server,
		}, noon)
		if err != nil {
			t.Error(err)
			return n
		}
		out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: m, Writer: "x", Bucket: found[i].Bucket})
		if err != nil {
			t.Error(err)
			return n
		}
		if out[0].Result == statemachine.Moved {
			n++
		}
	}
	return n
}
