package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

func gateway(t *testing.T, sp *storetest.Space) *worker.Gateway {
	t.Helper()
	g, err := worker.NewGateway(storetest.At(t, sp.Where, sp.Namespace, nil), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func registered(t *testing.T, g *worker.Gateway, name string, r worker.SessionRequest) int64 {
	t.Helper()
	s, _, err := g.Register(t.Context(), name, "host", &r)
	if err != nil {
		t.Fatal(err)
	}
	return s.Incarnation
}

func took(t *testing.T, g *worker.Gateway, name string, turn worker.RoundTurn) worker.RoundAnswer {
	t.Helper()
	a, err := g.Turn(t.Context(), name, &turn)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// All that a worker has said and got is known at every gateway.
func TestGatewaysAreOne(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	first, second := gateway(t, sp), gateway(t, sp)
	session := registered(t, first, "w", worker.SessionRequest{Slots: 3, Labels: "zone=a"})
	ids := sp.Open(t, storetest.Define("program", "p", "source", "s", "labels", "zone=a", "timeout", "10", "max_timeouts", "2"), storetest.Spec(), storetest.Spec())
	claim := worker.RoundTurn{Incarnation: session, Slots: 3, Request: "r-1"}
	got := took(t, second, "w", claim)
	if again := took(t, first, "w", claim); len(got.Tasks) != 3 || !slices.EqualFunc(again.Tasks, got.Tasks, func(a, b worker.Assigned) bool {
		return a.RoundRef == b.RoundRef && slices.Contains(ids, a.Task)
	}) {
		t.Fatalf("%+v, then %+v", got.Tasks, again.Tasks)
	}
	zero := 0
	var reports []worker.RoundEnd
	for _, a := range got.Tasks {
		end := worker.RoundEnd{RoundRef: a.RoundRef, Ended: worker.EndedItself, ExitCode: &zero, RetryAfter: task.Seconds(time.Hour)}
		switch a.Task {
		case ids[0]:
			end.Ended, end.ExitCode = worker.EndedOverdue, nil
		case ids[1]:
			end.Ended, end.ExitCode = worker.EndedHandedBack, nil
		}
		reports = append(reports, end)
	}
	for i, g := range []*worker.Gateway{first, second} {
		for _, o := range took(t, g, "w", worker.RoundTurn{Incarnation: session, Reports: reports}).Outcomes {
			if want := []string{"recorded", "repeated"}[i]; o.Outcome != want {
				t.Errorf("%+v, want %s", o, want)
			}
		}
	}
	for i, want := range []statemachine.State{statemachine.Open, statemachine.Open, statemachine.Executed} {
		if got := sp.Task(t, ids[i]); got.State != want || got.Timeouts+got.Releases > 1 || i == 1 && time.Duration(got.NotBefore.Sub(got.Current.Running)) == 0 {
			t.Errorf("task %d: %+v", ids[i], got)
		}
	}
	if err := second.Leave(t.Context(), "w", session); err != nil {
		t.Error(err)
	}
	for _, g := range []*worker.Gateway{first, second} {
		if _, err := g.Turn(t.Context(), "w", &claim); !errors.Is(err, worker.ErrLeaseLost) {
			t.Errorf("after it has left: %v", err)
		}
	}
	if _, err := first.Renew(t.Context(), "nobody", &worker.SessionBeat{Incarnation: 1}); !errors.Is(err, worker.ErrLeaseLost) {
		t.Errorf("%v", err)
	}
}

// A claim that was answered with nothing gets nothing, also if Redis carries it out later.
func TestGatewayCallsOff(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	g := gateway(t, sp)
	session := registered(t, g, "w", worker.SessionRequest{})
	turn := worker.RoundTurn{Incarnation: session, Slots: 1, Request: "r-1"}
	if got := took(t, g, "w", turn); len(got.Tasks) != 0 {
		t.Fatalf("%+v", got)
	}
	id := sp.Open(t, storetest.Spec())[0]
	late, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Incarnation: session, Node: "host", Request: "r-1", Candidates: storetest.Free(task.Bucket{}), Max: 1,
	})
	if err != nil || len(late.Tasks) != 0 {
		t.Errorf("%+v, %v", late, err)
	}
	if got := took(t, g, "w", turn); len(got.Tasks) != 0 {
		t.Errorf("sent again: %+v", got)
	}
	turn.Request = "r-2"
	if got := took(t, g, "w", turn); len(got.Tasks) != 1 || got.Tasks[0].Task != id {
		t.Errorf("%+v", got)
	}
}

// A turn that a proxy sends once more gets nothing once there was a later one, whatever came of that.
func TestGatewayHearsAnEcho(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	g := gateway(t, sp)
	session := registered(t, g, "w", worker.SessionRequest{})
	claim := func(name string) int {
		t.Helper()
		return len(took(t, g, "w", worker.RoundTurn{Incarnation: session, Slots: 1, Request: name}).Tasks)
	}
	for _, name := range []string{"r-8", "r-9", "r-10"} { // they get nothing
		claim(name)
	}
	sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec())
	for _, c := range []struct {
		name string
		gets int
	}{{"r-8", 0}, {"r-9", 0}, {"r-8", 0}, {"r-11", 1}, {"r-9", 0}, {"r-12", 1}, {"r-11", 0}, {"r-12", 1}, {"other-1", 1}} {
		if got := claim(c.name); got != c.gets {
			t.Errorf("%s gets %d tasks, want %d", c.name, got, c.gets)
		}
	}
}

// However often the rules change, a turn that waits has an answer.
func TestGatewayWhileRulesChange(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.AddQueue(t, task.ParseQueue("q", nil))
	g := gateway(t, sp)
	session := registered(t, g, "w", worker.SessionRequest{})
	ctx, stop := context.WithCancel(t.Context())
	var changing sync.WaitGroup
	changing.Go(func() {
		for paused := 0; ctx.Err() == nil; paused = 1 - paused {
			_, _ = sp.Store.SetQueue(ctx, "q", func(q *task.QueueSpec) error { return q.Set("paused", strconv.Itoa(paused)) })
		}
	})
	defer changing.Wait()
	defer stop()
	for i := range 100 {
		turn := worker.RoundTurn{Incarnation: session, Slots: 1, Request: fmt.Sprint("r-", i), Wait: task.Seconds(20 * time.Millisecond)}
		if got := took(t, g, "w", turn); len(got.Tasks) != 0 {
			t.Errorf("%+v", got)
		}
	}
}

// Without Redis a request fails so that it can be sent again.
func TestGatewayWithoutRedis(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	sp := storetest.On(t, srv)
	sp.Where = storetest.Where(srv) // Redis knows no other user once it is started again
	g := gateway(t, sp)
	session := registered(t, g, "w", worker.SessionRequest{})
	sp.Open(t, storetest.Spec())
	turn := worker.RoundTurn{Incarnation: session, Slots: 1, Request: "r-1"}
	got := took(t, g, "w", turn)
	srv.Stop(t)
	t.Cleanup(func() { srv.Restart(t) }) // what comes after a test looks at its Redis
	end := worker.RoundEnd{RoundRef: got.Tasks[0].RoundRef, Why: "it cannot be run"}
	_, turned := g.Turn(t.Context(), "w", &worker.RoundTurn{Incarnation: session, Reports: []worker.RoundEnd{end}})
	_, claimed := g.Turn(t.Context(), "w", &turn)
	_, renewed := g.Renew(t.Context(), "w", &worker.SessionBeat{Incarnation: session, Busy: 1})
	_, _, again := g.Register(t.Context(), "w", "host", &worker.SessionRequest{})
	for _, err := range []error{turned, claimed, renewed, again} {
		if !errors.Is(err, task.ErrUnreachable) {
			t.Errorf("%v", err)
		}
	}
}

// What cannot be is refused by the name of the field.
func TestGatewayRefuses(t *testing.T) {
	t.Parallel()
	g := gateway(t, storetest.New(t))
	for field, r := range map[string]worker.SessionRequest{
		"env": {Env: "a b"}, "labels": {Labels: "zone"}, "resources": {Resources: "gpu=x"}, "classes": {Classes: "a=b=c/"}, "maxthreads": {MaxThreads: "-1"},
	} {
		_, _, err := g.Register(t.Context(), "w", "host", &r)
		if wrong, ok := errors.AsType[*statemachine.FieldError](err); !ok || wrong.Field != field || strings.Contains(wrong.Want, "; ;") {
			t.Errorf("%s: %v", field, err)
		}
	}
	long := strings.Repeat("x", 1<<20+1)
	zero := 0
	for field, turn := range map[string]worker.RoundTurn{
		"request": {Slots: 1}, "wait": {Wait: task.Seconds(2 * time.Minute)},
		"output": {Reports: []worker.RoundEnd{{ExitCode: &zero, Output: []byte(long)}}}, "error": {Reports: []worker.RoundEnd{{ExitCode: &zero, Error: []byte(long)}}},
		"result": {Reports: []worker.RoundEnd{{ExitCode: &zero, Result: &long}}},
	} {
		_, err := g.Turn(t.Context(), "w", &turn)
		if wrong, ok := errors.AsType[*statemachine.FieldError](err); !ok || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A call of a worker ends the wait for one; that a connection is made does not.
func TestGatewayCalls(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	g := gateway(t, sp)
	registered(t, g, "w", worker.SessionRequest{})
	if g.Listen(t.Context(), "w", time.Second) {
		t.Error("called by nobody")
	}
	called := make(chan bool, 1)
	go func() { called <- g.Listen(t.Context(), "w", time.Minute) }()
	wait.Eventually(t, time.Minute, func() bool {
		if _, err := sp.Store.CommandWorker(t.Context(), "w", task.CommandDrain); err != nil {
			t.Error(err)
		}
		return len(called) > 0
	}, "the call is not heard")
	if !<-called {
		t.Error("it is heard as none")
	}
}
