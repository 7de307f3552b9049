package store_test

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

var retentionLosses = map[string]map[string]loss{
	"outdated": {
		"to go":      {prepare: archivedTasks, call: outdatedCall},
		"let go":     {prepare: keptNoMore, call: outdatedCall, hint: true},
		"of another": {prepare: turnOfAnother, call: outdatedCall},
	},
	"purge": {
		"gone":    {prepare: archivedTasks, call: purgeCall(0), hint: true}, // purged before, says the second answer
		"changed": {prepare: archivedTasks, call: purgeCall(1)},
		"kept":    {prepare: archivedAndRetried, call: purgeCall(0), hint: true},
	},
	"retain": {"archived before": {prepare: archivedBefore, call: func(t *testing.T, st *store.Store) step {
		return func() (any, error) { return st.Retain(t.Context(), []int64{1, 2, 3}, 3) }
	}, hint: true}},
}

var keepNone = []upkeep.Retention{{Outcome: statemachine.Succeeded, Most: 0}}

// archivedTasks are 1 to 3, which may go.
func archivedTasks(t *testing.T, sp *storetest.Space) {
	t.Helper()
	if _, _, err := sp.Store.KeepIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	archivedBefore(t, sp)
}

// archivedBefore are tasks that were archived while there was no retention.
func archivedBefore(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(3)(t, sp)
	finishAll(t, sp, "c", 1, 2, 3)
}

// finishAll claims, ends and archives tasks; each call has a name of its own, and not a random one.
func finishAll(t *testing.T, sp *storetest.Space, claim string, ids ...int64) {
	t.Helper()
	r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Request: claim, Candidates: storetest.Free(task.Bucket{}), Max: len(ids), MaxThreads: task.Unlimited,
	})
	if err != nil || len(r.Tasks) != len(ids) {
		t.Fatalf("claimed %+v, %v", r, err)
	}
	for i, id := range ids {
		sp.Report(t, &r.Tasks[i], "", "")
		must(t, sp, id, statemachine.Server, statemachine.Settle)
		must(t, sp, id, statemachine.Manager, statemachine.Archive)
	}
}

// archive brings a task into the archive.
func archive(t *testing.T, sp *storetest.Space) int64 {
	t.Helper()
	id := bring(t, sp, statemachine.Succeeded)
	must(t, sp, id, statemachine.Manager, statemachine.Archive)
	return id
}

func archivedAndRetried(t *testing.T, sp *storetest.Space) {
	t.Helper()
	archivedTasks(t, sp)
	request := tasks.OpenRequest{Key: "repeat", Specs: []task.Definition{storetest.Spec(func(s *task.Definition) { s.RetryOf = 1 })}}
	if _, err := sp.Store.Open(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

// keptNoMore is a task that was kept by another one, which is archived now.
func keptNoMore(t *testing.T, sp *storetest.Space) {
	t.Helper()
	archivedAndRetried(t, sp)
	purge(t, sp, 1)
	finishAll(t, sp, "d", 4)
	sp.SetClock(t, noon.Add(100*second))
}

func turnOfAnother(t *testing.T, sp *storetest.Space) {
	t.Helper()
	archivedTasks(t, sp)
	outdated(t, sp, "another", keepNone...)
}

// retireFully makes all that there is with a retention: a task that is gone, one that is kept, one that may go.
func retireFully(t *testing.T, sp *storetest.Space) {
	t.Helper()
	if _, _, err := sp.Store.KeepIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, kept, last := archive(t, sp), archive(t, sp), archive(t, sp)
	sp.Open(t, storetest.Spec(func(s *task.Definition) { s.RetryOf = kept }), storetest.Spec(func(s *task.Definition) { s.ReplayOf = last }))
	purge(t, sp, gone, kept)
	outdated(t, sp, "s", keepNone...)
	if _, err := sp.Store.Retain(t.Context(), []int64{last}, last); err != nil {
		t.Fatal(err)
	}
}

// outdated is what is to go, in the turn of a server.
func outdated(t *testing.T, sp *storetest.Space, by string, rules ...upkeep.Retention) (ids []int64, mine bool) {
	t.Helper()
	turn := upkeep.PurgeLease{By: by, For: 15 * time.Second}
	found, _, mine, err := sp.Store.Outdated(t.Context(), turn, rules, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range found {
		ids = append(ids, o.IDs...)
	}
	return ids, mine
}

// outgoing is the task as it is now.
func outgoing(t *testing.T, sp *storetest.Space, id int64) upkeep.Outgoing {
	t.Helper()
	task := sp.Task(t, id)
	return upkeep.Outgoing{ID: id, Rev: task.Rev, Outcome: task.Outcome}
}

// purge purges tasks as they are now.
func purge(t *testing.T, sp *storetest.Space, ids ...int64) []upkeep.Purged {
	t.Helper()
	var tasks []upkeep.Outgoing
	for _, id := range ids {
		tasks = append(tasks, outgoing(t, sp, id))
	}
	answers, err := sp.Store.Purge(t.Context(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

func outdatedCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) {
		found, _, mine, err := st.Outdated(t.Context(), upkeep.PurgeLease{By: "s", For: 15 * time.Second}, keepNone, 2, nil)
		return []any{found, mine}, err
	}
}

// purgeCall purges tasks as they were so many revisions ago.
func purgeCall(back int64) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		var tasks []upkeep.Outgoing
		for id := int64(1); id <= 2; id++ {
			task, err := st.Task(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			tasks = append(tasks, upkeep.Outgoing{ID: id, Rev: task.Rev - back, Outcome: task.Outcome})
		}
		return func() (any, error) { return st.Purge(t.Context(), tasks) }
	}
}
