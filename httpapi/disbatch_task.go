package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// openTasks opens a task for each element of the body, its parameters: all of them or, if one cannot be, none.
func (d *disbatch) openTasks(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	queue, err := d.m.Queue(ctx, q.http.PathValue("name"))
	switch {
	case err != nil:
		return nil, err
	case queue.Class == "":
		return nil, newProblem(http.StatusBadRequest, fmt.Sprintf(
			"queue %q has no plugin for its tasks; POST /queues/%[1]s gives it one", queue.Name))
	case len(q.list) == 0:
		return nil, newProblem(http.StatusBadRequest, "the body has no task; send an array with the parameters of each")
	}
	specs := make([]task.Spec, len(q.list))
	for i, params := range q.list {
		specs[i] = task.Spec{
			Program: programOf(queue.Class), Class: queue.Class, Queue: queue.Name, Params: params, Archive: task.ArchiveAtOnce,
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(params, &members) != nil || len(members) == 0 {
			return nil, newProblem(http.StatusBadRequest, fmt.Sprintf("element %d is not an object with members; nothing was opened", i))
		}
		if err := d.m.Check(specs[i]); err != nil {
			return nil, newProblem(http.StatusBadRequest, fmt.Sprintf("element %d: %v; nothing was opened", i, err))
		}
	}
	key, err := q.requestKey()
	if err != nil {
		return nil, err
	}
	opened, err := d.m.SubmitAll(ctx, slices.Values(specs), manager.WithRequestKey("http "+q.ID+" "+key))
	if err != nil {
		return nil, halfDone(len(opened), key, err)
	}
	return &doorAnswer{status: http.StatusCreated, body: map[string][]int64{"ids": task.IDs(opened)}}, nil
}

// requestKey names the request, so that it opens nothing twice; made up if the client does not.
func (q *doorRequest) requestKey() (string, error) {
	const name, most = "Idempotency-Key", 200
	key := q.http.Header.Get(name)
	if len(key) > most {
		return "", &statemachine.FieldError{Field: name, Value: key[:most], Want: "a text of at most 200 bytes"}
	}
	return cmp.Or(key, rand.Text()), nil
}

// disbatchTask is a task as it is shown, with both names of what has two.
type disbatchTask struct {
	ID         int64           `json:"id"`
	DocumentID int64           `json:"_id"`
	Queue      string          `json:"queue"`
	Created    json.Number     `json:"ctime,omitempty"`
	Modified   json.Number     `json:"mtime,omitempty"`
	Params     json.RawMessage `json:"params"`
	Parameters json.RawMessage `json:"parameters"`
	Stdout     string          `json:"stdout"`
	Stderr     string          `json:"stderr"`
	Status     int             `json:"status"`
	Node       *string         `json:"node"` // null before a node has claimed it
}

func disbatchTaskOf(t *task.Task) *disbatchTask {
	shown := &disbatchTask{
		ID: t.ID, DocumentID: t.ID, Queue: t.Queue, Created: epochOf(t.Created), Modified: epochOf(modified(t)),
		Params: t.Params, Parameters: t.Params, Status: t.DisbatchStatus(),
	}
	if last := t.Last(); last != nil {
		shown.Stdout, shown.Stderr = last.Output, cmp.Or(last.Error, last.Stderr)
	}
	if node := claimedBy(t); node != "" {
		shown.Node = &node
	}
	return shown
}

// modified is when a task was changed last, by its log, which has whole seconds, and the stamps of its rounds.
func modified(t *task.Task) time.Time {
	last := t.Created
	for _, line := range t.Log {
		last = later(last, line.At)
	}
	for i := range t.Rounds {
		for _, at := range t.Rounds[i].Stamps {
			last = later(last, at)
		}
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// claimedBy is the node of the present round, empty if no node has claimed it.
func claimedBy(t *task.Task) string {
	i := slices.IndexFunc(t.Rounds, func(r task.Round) bool { return r.Number == t.Round })
	if i < 0 {
		return ""
	}
	return t.Rounds[i].Node
}

func (d *disbatch) getTask(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	id := q.number("name")
	if id < 1 {
		return nil, newProblem(http.StatusNotFound, fmt.Sprintf("task %q is not there; an id is a whole number", q.http.PathValue("name")))
	}
	t, err := d.m.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	return &doorAnswer{status: http.StatusOK, body: disbatchTaskOf(t)}, nil
}
