package verbs

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// hand is a worker and a server made by hand, one step at a time.
type hand struct {
	t     *testing.T
	store *store.Store
	now   statemachine.Time
}

// claim takes the one task that is due.
func (h *hand) claim() *tasks.Claimed {
	h.t.Helper()
	c, err := h.store.Claim(h.t.Context(), tasks.ClaimRequest{
		Worker: "w", Request: conn.NewToken(), Candidates: storetest.Free(task.Bucket{}), Max: 1,
	})
	if err != nil || len(c.Tasks) != 1 {
		h.t.Fatalf("claim: %v, %v", c, err)
	}
	h.now = c.Now
	return &c.Tasks[0]
}

// send is what the worker does with what the program writes while it runs.
func (h *hand) send(c *tasks.Claimed, stream string, offset int, data string) {
	h.t.Helper()
	chunk := tasks.Chunk{Stream: stream, Offset: int64(offset), Data: []byte(data)}
	if err := h.store.Tell(h.t.Context(), "w", &c.Task, tasks.News{Chunks: []tasks.Chunk{chunk}}); err != nil {
		h.t.Fatal(err)
	}
}

// report ends the round with fields of its record, names and values in turn.
func (h *hand) report(c *tasks.Claimed, record ...string) {
	h.t.Helper()
	failed := false
	for i := 0; i < len(record); i += 2 {
		failed = failed || record[i] == "error" && record[i+1] != ""
		record[i] = statemachine.RoundField(c.Task.Round, record[i])
	}
	h.apply(&c.Task, c.Bucket, statemachine.Occurrence{
		Event: statemachine.Report, Actor: statemachine.Worker, Claim: c.Task.Current.Claim, Round: c.Task.Round, Failed: failed,
	}, record)
}

// settle is what the server does with a round that was reported.
func (h *hand) settle() {
	h.t.Helper()
	executed, err := h.store.Listed(h.t.Context(), statemachine.Executed, 0, 1)
	if err != nil || len(executed.Tasks) != 1 {
		h.t.Fatalf("executed: %v, %v", executed, err)
	}
	seen := &executed.Tasks[0]
	h.apply(&seen.Task, seen.Bucket, statemachine.Occurrence{Event: statemachine.Settle, Actor: statemachine.Server}, nil)
}

// expire is what the server does with a task whose end_before has passed.
func (h *hand) expire(id int64) {
	h.t.Helper()
	due, err := h.store.Due(h.t.Context(), 10)
	if err != nil || len(due.Tasks) != 1 || due.Tasks[0].ID != id {
		h.t.Fatalf("due: %v, %v", due, err)
	}
	h.now = due.Now
	seen := &due.Tasks[0]
	h.apply(&seen.Task, seen.Bucket, statemachine.Occurrence{Event: statemachine.Deadline, Actor: statemachine.Server}, nil)
}

func (h *hand) apply(task *statemachine.Task, b task.Bucket, o statemachine.Occurrence, fields []string) {
	h.t.Helper()
	move, err := statemachine.Decide(task, o, h.now)
	if err != nil {
		h.t.Fatal(err)
	}
	done, err := h.store.Apply(h.t.Context(), tasks.Commit{Move: move, Writer: "w", Bucket: b, Fields: fields})
	if err != nil || done[0].Err != nil {
		h.t.Fatalf("apply: %v, %v", done, err)
	}
}
