package store_test

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// keyLosses are the scenarios of submissions with keys and of repeated tasks;
// they join scriptLosses.
var keyLosses = map[string]map[string]loss{
	"open": {
		"held":      {call: openAllCall(storetest.Spec(func(s *task.Definition) { storetest.Set(s, "hold", "why") }))},
		"in queues": {prepare: queued("", ""), call: openAllCall(withKey("q", "k"), withKey("", ""))},
		"one key, twice in one request, and known": {
			prepare: keyed, call: openAllCall(withKey("", "k"), withKey("q", "k"), withKey("", "new"), withKey("", "new"), withKey("", "")),
		},
		"all known":     {prepare: keyed, call: openAllCall(withKey("", "k"), withKey("", "k"))},
		"retry":         {prepare: succeeded, call: openAllCall(retryOf(1))},
		"retry, twice":  {prepare: succeeded, call: openAllCall(retryOf(1), retryOf(1))},
		"retried":       {prepare: retried, call: openAllCall(retryOf(1), withKey("", ""))},
		"retry, replay": {prepare: succeeded, call: openAllCall(replayOf(1), replayOf(1))},
	},
}

func withKey(queue, key string) task.Definition {
	return storetest.Spec(func(s *task.Definition) { storetest.Set(s, "queue", queue, "key", key) })
}

func retryOf(id int64) task.Definition {
	return storetest.Spec(func(s *task.Definition) { s.RetryOf = id })
}

func replayOf(id int64) task.Definition {
	return storetest.Spec(func(s *task.Definition) { s.ReplayOf = id })
}

func openAllCall(specs ...task.Definition) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return func() (any, error) {
			return st.OpenAll(t.Context(), tasks.OpenRequest{Key: "again", Specs: specs})
		}
	}
}

// keyed has a queue q, and a task with the key k in the default queue.
func keyed(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sp.AddQueue(t, task.ParseQueue("q", nil))
	if _, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: "before", Specs: []task.Definition{withKey("", "k")}}); err != nil {
		t.Fatal(err)
	}
}

// retried has task 1, which has been repeated.
func retried(t *testing.T, sp *storetest.Space) {
	t.Helper()
	succeeded(t, sp)
	if _, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: "before", Specs: []task.Definition{retryOf(1)}}); err != nil {
		t.Fatal(err)
	}
}
