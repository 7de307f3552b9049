package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func renewCall(t *testing.T, st *store.Store) step {
	t.Helper()
	w := session(t, st)
	return func() (any, error) {
		return st.Renew(t.Context(), w, fleet.Heartbeat{State: task.WorkerReady, Reason: "why", Busy: 1})
	}
}

// followed has an entry that is over and one that is not.
func followed(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sessionClaimed(t, sp)
	followCall(t, sp.Store).must(t)
	sp.Raw.HSet(t.Context(), sp.Key("follow"), "7", "1")
}

func followCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.Follow(t.Context(), 1, 10*time.Second, false) })
}

func dropCall(t *testing.T, st *store.Store) step {
	t.Helper()
	task, err := st.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{
		Event: statemachine.Report, Actor: statemachine.Worker, Claim: task.Current.Claim,
	}, noon)
	if err != nil {
		t.Fatal(err)
	}
	order := tasks.Commit{Move: m, Writer: "w", Drop: []string{"0:node", "7:output"}}
	return done(func() error {
		out, err := st.Apply(t.Context(), order)
		if err != nil {
			return err
		}
		return out[0].Err
	})
}

func progressCall(t *testing.T, st *store.Store) step {
	t.Helper()
	task, err := st.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return done(func() error {
		return st.Tell(t.Context(), "w", &task.Task, tasks.News{Progress: &tasks.Progress{Part: 0.4, Text: "half\nway"}})
	})
}

// orderCall does not compare the answer: it is read before.
func orderCall(order task.WorkerCommand) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return done(func() error { _, err := st.CommandWorker(t.Context(), "w", order); return err })
	}
}

func interruptCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.Interrupt(t.Context(), "w", "r") })
}

func passOnCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.PassOn(t.Context(), wakeUp(st)) })
}

func someChunks(from, n int) []tasks.Chunk {
	chunks := make([]tasks.Chunk, n)
	for i := range chunks {
		chunks[i] = tasks.Chunk{Stream: "output", Offset: int64(from + i), Data: []byte(strings.Repeat("x", 1+i%2))}
	}
	return chunks
}

func chunksBefore(t *testing.T, sp *storetest.Space) {
	t.Helper()
	claimed(t, sp)
	task := sp.Task(t, 1)
	if err := sp.Store.Tell(t.Context(), "w", &task.Task, tasks.News{Chunks: someChunks(0, 60)}); err != nil {
		t.Fatal(err)
	}
}

func chunksCall(t *testing.T, st *store.Store) step {
	t.Helper()
	task, err := st.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return done(func() error { return st.Tell(t.Context(), "w", &task.Task, tasks.News{Chunks: someChunks(60, 9)}) })
}
