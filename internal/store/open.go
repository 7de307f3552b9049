package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// MaxOpen is the most tasks one call of [Store.Open] takes: a script blocks
// Redis while it runs.
const MaxOpen = 1000

// requestTTL is how long Redis remembers a request to open tasks. It covers
// any repetition by a client, and a person who runs a command again.
const requestTTL = 24 * time.Hour

// NewToken returns a text no other process makes: for requests and claims.
func NewToken() string { return rand.Text()[:16] }

// OpenRequest asks for tasks to be opened, all or none.
type OpenRequest struct {
	// Key makes the request unique for 24 hours: sent again with the same key
	// it returns the ids of the first time and opens nothing. Required.
	Key   string
	Specs []Spec
}

// Open creates tasks and returns their ids, which are consecutive. It returns
// a *statemachine.FieldError (wrapped, with the index of the task) if one
// cannot be; then none is opened.
func (s *Store) Open(ctx context.Context, req OpenRequest) ([]int64, error) {
	if len(req.Specs) == 0 || len(req.Specs) > MaxOpen {
		return nil, fmt.Errorf("open: %d tasks in one call: want 1 to %d", len(req.Specs), MaxOpen)
	}
	if req.Key == "" {
		return nil, errors.New("open: a request needs a key")
	}
	call := openCall{store: s}
	for i := range req.Specs {
		if err := call.add(&req.Specs[i]); err != nil {
			return nil, fmt.Errorf("open: task %d of the request: %w", i, err)
		}
	}
	r, err := s.runList(ctx, "open", call.keys(req.Key), call.args(len(req.Specs))...)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(req.Specs))
	for id := r.number(0); id <= r.number(1); id++ {
		ids = append(ids, id)
	}
	return ids, nil
}

// openCall gathers the arguments of the script.
type openCall struct {
	store   *Store
	buckets bucketArgs
	tasks   []any
}

func (c *openCall) add(spec *Spec) error {
	if err := spec.Check(); err != nil {
		return err
	}
	values, err := spec.values(c.store.namespace)
	if err != nil {
		return err
	}
	deadline := spec.EndBefore
	if t, _ := statemachine.ParseTime(deadline); t == statemachine.Never {
		deadline = ""
	}
	c.tasks = append(c.tasks, c.buckets.index(spec.Bucket), spec.StartAfter, deadline, len(values))
	c.tasks = append(c.tasks, values...)
	return nil
}

func (c *openCall) keys(request string) []string {
	k := c.store.keys
	return slices.Concat(
		[]string{k.meta(), k.taskID(), k.request(request), k.state(statemachine.Open), k.due(), k.buckets()},
		c.buckets.keys(k),
	)
}

func (c *openCall) args(n int) []any {
	args := make([]any, 0, 6+len(c.buckets.names)+len(c.tasks))
	args = append(args, c.store.keys.taskPrefix(), int(requestTTL.Seconds()), n,
		string(statemachine.Open), Protocol, len(c.buckets.names))
	for _, b := range c.buckets.names {
		args = append(args, b)
	}
	return append(args, c.tasks...)
}
