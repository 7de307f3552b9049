package store_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

func noteCall(t *testing.T, st *store.Store) step {
	t.Helper()
	task, err := st.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	lines := []tasks.Line{{At: noon, Text: "one"}, {At: noon, Text: "two"}}
	return done(func() error { return st.Tell(t.Context(), "w", &task.Task, tasks.News{Lines: lines}) })
}

// metaCall sets attributes of task 1, in the name of its worker or not.
func metaCall(worker bool) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		task, err := st.Task(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		set := map[string]string{"phase": "load", "gone": ""}
		return done(func() error {
			if worker {
				return st.Tell(t.Context(), "w", &task.Task, tasks.News{Meta: set})
			}
			_, outcomes, err := st.SetMeta(t.Context(), []int64{1}, tasks.MetaChange{Set: set, Note: tasks.Note{Writer: "m", Text: "set"}})
			if err == nil {
				err = outcomes[0].Err
			}
			return err
		})
	}
}

// paramsCall gives task 1 other parameters.
func paramsCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error {
		_, outcomes, err := st.SetParams(t.Context(), []int64{1}, `{"n":1}`, tasks.Note{Writer: "m", Text: "set"})
		if err == nil {
			err = outcomes[0].Err
		}
		return err
	})
}

// foreign plants task 1 as a client of the original does: no index knows it.
func foreign(t *testing.T, sp *storetest.Space) {
	t.Helper()
	ctx := t.Context()
	sp.Raw.Incr(ctx, sp.Key("task_id"))
	sp.Raw.HSet(ctx, sp.Key("task:1"), "id", "1", "program", "p", "source", "s", "input", "", "state", "open",
		"round", "0", "fails", "0", "timeouts", "0", "start_after", "0", "end_before", "1900000000", "timeout", "inf",
		"max_fails", "0", "max_timeouts", "0", "log", "", "namespace", sp.Namespace, "0:open", "1")
	sp.Raw.ZAdd(ctx, sp.Key("open"), redis.Z{Score: 0, Member: "1"})
}

func inspected(t *testing.T, st *store.Store) *upkeep.Inspection {
	t.Helper()
	found, _, err := st.Inspect(t.Context(), []int64{1})
	if err != nil {
		t.Fatal(err)
	}
	return &found[0]
}

func reindexCall(t *testing.T, st *store.Store) step {
	t.Helper()
	found := inspected(t, st)
	return func() (any, error) { return st.Reindex(t.Context(), &found.Task, second) }
}

func watermarkCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.MoveWatermark(t.Context(), 0, 1) }
}

func registerCall(standIn bool) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		p := fleet.ManagerRecord{Instance: "i", Name: "n", Standby: standIn}
		return done(func() error { return st.RegisterManager(t.Context(), p) })
	}
}

func registeredManager(t *testing.T, sp *storetest.Space) {
	t.Helper()
	registerCall(false)(t, sp.Store).must(t)
}

func inNoSet(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(1)(t, sp)
	sp.Raw.ZRem(t.Context(), sp.Key("open"), "1")
}

func stray(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(1)(t, sp)
	for _, set := range []string{"running", "failed"} {
		sp.Raw.ZAdd(t.Context(), sp.Key(set), redis.Z{Score: 1, Member: "1"})
	}
}

// archivedByForeigner leaves the hash's state as the original does.
func archivedByForeigner(t *testing.T, sp *storetest.Space) {
	t.Helper()
	succeeded(t, sp)
	sp.Raw.ZRem(t.Context(), sp.Key("succeeded"), "1")
	sp.Raw.ZAdd(t.Context(), sp.Key("archived"), redis.Z{Score: 1, Member: "1"})
}

func damaged(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(1)(t, sp)
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "fails", "many")
}

func hashGone(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(1)(t, sp)
	sp.Raw.Del(t.Context(), sp.Key("task:1"))
}

// mended was set aside and is whole again.
func mended(t *testing.T, sp *storetest.Space) {
	t.Helper()
	damaged(t, sp)
	setAsideCall(t, sp.Store).must(t)
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "fails", "0")
}

func relistCall(to statemachine.State) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		found := inspected(t, st)
		return func() (any, error) { return st.Relist(t.Context(), found, to, noon) }
	}
}

func setAsideCall(t *testing.T, st *store.Store) step {
	t.Helper()
	found := inspected(t, st)
	return func() (any, error) { return st.DeadLetter(t.Context(), found, noon) }
}
