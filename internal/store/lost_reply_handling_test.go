package store_test

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// handlingLosses are the scenarios of the lease under which tasks are handled;
// they join scriptLosses.
var handlingLosses = map[string]map[string]loss{
	"take": {
		"take":                  {prepare: handlerBegun, call: takeCall("i", []int64{1}, nil)},
		"held":                  {prepare: handled, call: takeCall("i", []int64{1}, nil)},
		"take over":             {prepare: handlerGone, call: takeCall("j", []int64{1}, nil)},
		"another's":             {prepare: handledBeside, call: takeCall("j", []int64{1}, nil)},
		"give back":             {prepare: handled, call: takeCall("i", nil, []int64{1, 7})},
		"archive":               {prepare: retained(handled), call: archiveCall("i", tasks.TakeRequest{}, 1)},
		"archive and take":      {prepare: handledOfThree, call: archiveCall("i", tasks.TakeRequest{Ask: []int64{3}, Back: []int64{2}}, 1)},
		"archive two":           {prepare: retained(handledOfThree), call: archiveCall("i", tasks.TakeRequest{Next: tasks.Page{State: statemachine.Succeeded, Most: 2}}, 1, 2)},
		"archive another's":     {prepare: handledBeside, call: archiveCall("j", tasks.TakeRequest{}, 1)},
		"archive too late":      {prepare: handlerGone, call: archiveCall("i", tasks.TakeRequest{Back: []int64{1}}, 1)},
		"archive a damaged one": {prepare: handled, call: archiveDamagedCall},
		"unread":                {prepare: retained(succeeded), call: archiveCall("", tasks.TakeRequest{}, 1)},
		"unread, handled":       {prepare: handled, call: archiveCall("", tasks.TakeRequest{}, 1)},
		"unread, left behind":   {prepare: handlerGone, call: archiveCall("", tasks.TakeRequest{}, 1)},
	},
	"keep": {
		"begin":    {prepare: succeeded, call: beginHandlingCall("i")},
		"replace":  {prepare: handled, call: beginHandlingCall("j", "i")},
		"renew":    {prepare: handled, call: keepCall("i", 1)},
		"end":      {prepare: handled, call: endHandlingCall},
		"sweep":    {prepare: handledBeside, call: sweepCall},
		"not mine": {prepare: handled, call: lostHandlingCall},
	},
}

// handlingOf is the lease of the tests' managers.
func handlingOf(instance string) fleet.Handling {
	return fleet.Handling{Instance: instance, Lease: 15 * time.Second}
}

func beginHandlingCall(instance string, replaces ...string) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return done(func() error {
			return st.BeginHandling(t.Context(), handlingOf(instance), &fleet.HandlingWatch{}, replaces...)
		})
	}
}

func keepCall(instance string, ids ...int64) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return done(func() error {
			return st.KeepHandling(t.Context(), handlingOf(instance), &fleet.HandlingWatch{}, ids...)
		})
	}
}

func endHandlingCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.EndHandling(t.Context(), handlingOf("i")) })
}

// lostHandlingCall renews the lease of i, which believes to have task 7.
func lostHandlingCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) {
		err := st.KeepHandling(t.Context(), handlingOf("i"), &fleet.HandlingWatch{}, 7)
		if isHandlingLost(err) {
			return "lost", nil
		}
		return "kept", err
	}
}

func takeCall(instance string, take, back []int64) func(*testing.T, *store.Store) step {
	return archiveCall(instance, tasks.TakeRequest{Ask: take, Back: back})
}

// archiveCall archives succeeded tasks, as they are now, and asks for others. It answers which it was granted, with their revisions,
// what became of those to archive, and what comes next. What was archived by the call before is archived.
func archiveCall(instance string, request tasks.TakeRequest, ids ...int64) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		request := request
		request.Instance, request.Writer, request.Outcome = instance, "m", statemachine.Succeeded
		for _, id := range ids {
			task, err := st.Task(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			request.Archive = append(request.Archive, archiving(t, task))
		}
		return takeStep(t, st, request)
	}
}

// taken is what a manager is told.
type taken struct {
	Granted map[int64]int64
	Refused []string
	Next    []int64
	Lost    bool
}

func takeStep(t *testing.T, st *store.Store, request tasks.TakeRequest) step {
	t.Helper()
	return func() (any, error) {
		reply, err := st.Take(t.Context(), &request)
		answer := taken{Granted: map[int64]int64{}, Next: reply.Next, Lost: isHandlingLost(err)}
		for _, granted := range reply.Granted {
			answer.Granted[granted.ID] = granted.Rev
		}
		for _, o := range reply.Archived {
			if o.Err != nil {
				answer.Refused = append(answer.Refused, o.Err.Error())
			}
		}
		if answer.Lost {
			err = nil
		}
		return answer, err
	}
}

// archiving is the decision to archive a task.
func archiving(t *testing.T, task *tasks.TaskHeader) statemachine.Move {
	t.Helper()
	m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{Event: statemachine.Archive, Actor: statemachine.Manager}, noon)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// archiveDamagedCall archives task 1, which has lost its state.
func archiveDamagedCall(t *testing.T, st *store.Store) step {
	t.Helper()
	call := archiveCall("i", tasks.TakeRequest{}, 1)(t, st)
	if err := st.Redis.HDel(t.Context(), st.Keys.Task(1), "state").Err(); err != nil {
		t.Fatal(err)
	}
	return call
}

// retained is a namespace that notes which archived tasks may go.
func retained(prepare func(*testing.T, *storetest.Space)) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		prepare(t, sp)
		if _, _, err := sp.Store.KeepIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// handledOfThree are three succeeded tasks, 1 and 2 with the handlers of i.
func handledOfThree(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(3)(t, sp)
	r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{Worker: "w", Request: "r", Max: 3, Ahead: 2, Candidates: storetest.Free(task.Bucket{})})
	if err != nil || len(r.Tasks) != 3 {
		t.Fatalf("claimed %d, %v", len(r.Tasks), err)
	}
	for i := range r.Tasks {
		if o := sp.Report(t, &r.Tasks[i], "out", ""); o.Err != nil {
			t.Fatal(o.Err)
		}
		if sp.Task(t, r.Tasks[i].Task.ID).State == statemachine.Executed {
			must(t, sp, r.Tasks[i].Task.ID, statemachine.Server, statemachine.Settle)
		}
	}
	beginHandlingCall("i")(t, sp.Store).must(t)
	takeCall("i", []int64{1, 2}, nil)(t, sp.Store).must(t)
}

// handlerBegun has task 1, which has succeeded, and the manager i.
func handlerBegun(t *testing.T, sp *storetest.Space) {
	t.Helper()
	succeeded(t, sp)
	beginHandlingCall("i")(t, sp.Store).must(t)
}

// handled is task 1 with the handlers of i.
func handled(t *testing.T, sp *storetest.Space) {
	t.Helper()
	handlerBegun(t, sp)
	takeCall("i", []int64{1}, nil)(t, sp.Store).must(t)
}

// handledBeside has the manager j as well.
func handledBeside(t *testing.T, sp *storetest.Space) {
	t.Helper()
	handled(t, sp)
	beginHandlingCall("j")(t, sp.Store).must(t)
}

// handlerGone leaves task 1 with i, whose lease is over.
func handlerGone(t *testing.T, sp *storetest.Space) {
	t.Helper()
	handledBeside(t, sp)
	sp.Raw.HDel(t.Context(), sp.Key("handling"), "@i")
}

// sweepCall renews the lease of j, which has watched that of i for all of it.
func sweepCall(t *testing.T, st *store.Store) step {
	t.Helper()
	own := time.Now()
	w := &fleet.HandlingWatch{Now: func() time.Time { return own }}
	if err := st.KeepHandling(t.Context(), handlingOf("j"), w); err != nil {
		t.Fatal(err)
	}
	own = own.Add(handlingOf("i").Lease)
	return done(func() error { return st.KeepHandling(t.Context(), handlingOf("j"), w) })
}
