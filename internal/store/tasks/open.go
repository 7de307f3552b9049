package tasks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/task"
)

// MaxOpen is the most tasks one call of [Tasks.Open] takes: a script blocks
// Redis while it runs.
const MaxOpen = 1000

// RequestTTL is how long Redis remembers a request to open tasks. It covers
// any repetition by a client, and a person who runs a command again.
const RequestTTL = 24 * time.Hour

// LoneRequest is an [OpenRequest.Life] for a key that nobody can give again but the call that has made it up: a client repeats a
// call for seconds. A project that opens its tasks one by one leaves one such key for each.
const LoneRequest = time.Hour

// OpenRequest asks for tasks to be opened, all or none.
type OpenRequest struct {
	// Key makes the request unique for 24 hours: sent again with the same key
	// it returns the ids of the first time and opens nothing. Required.
	Key   string
	Specs []task.Definition
	// Digest stands for what is asked for (see [Digest]): the same key with another digest is refused. Empty for none.
	Digest string
	// Life is how long the request is remembered; 0 for 24 hours.
	Life time.Duration
	// KeyTTL is how long tasks have their keys, if they do not live longer; 0 for 7 days.
	KeyTTL time.Duration
	// Plan is the plan that all of them belong to, 0 for none. Job says that it is one whose tasks run at once: then those
	// without keys are opened like tasks of no plan.
	Plan task.PlanID
	Job  bool
	// Rules is the version of the rules from which the defaults of queues were taken; 0: whatever they are.
	Rules int64
	// Record is the record that is written with them, nil for none.
	Record *RecordWrite
	// Grow says that they are the next tasks of a step of the plan that was kept by [plans.Plans.KeepGrowth]; nil if not.
	Grow *Grow
}

// Open is [Tasks.OpenAll] for requests without keys: the ids are consecutive.
func (s *Tasks) Open(ctx context.Context, req OpenRequest) ([]int64, error) {
	opened, err := s.OpenAll(ctx, req)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(opened))
	for i := range opened {
		ids[i] = opened[i].ID
	}
	return ids, nil
}

// Opening is a request to open tasks that only has to be sent: a caller can make the next one while one is on its way.
type Opening struct {
	store *Tasks
	req   OpenRequest
	of    conn.Subject
	args  []any
}

// Prepare makes an Opening. The error is a *statemachine.FieldError (wrapped, with the index of the task) if one cannot be.
func (s *Tasks) Prepare(req OpenRequest) (*Opening, error) {
	if len(req.Specs) == 0 || len(req.Specs) > MaxOpen {
		return nil, fmt.Errorf("open: %d tasks in one call: want 1 to %d", len(req.Specs), MaxOpen)
	}
	if req.Key == "" {
		return nil, errors.New("open: a request needs a key")
	}
	o := &Opening{store: s, req: req}
	call := openCall{keys: s.Keys, req: &o.req, tasks: make([]opened, len(req.Specs))}
	for i := range req.Specs {
		if err := call.add(i); err != nil {
			return nil, fmt.Errorf("open: task %d of the request: %w", i, err)
		}
	}
	o.args = call.args()
	o.of = conn.Subject{Request: req.Key, More: append(call.buckets.keys(s.Keys), call.named...)}
	return o, nil
}

// Send creates the tasks, all or none, and returns them in the order of the specs. It may be called again: see [OpenRequest].
// The error matches [conn.ErrRules] if they are others now, [task.ErrRequestKey], [task.ErrKeyTaken], [task.ErrNoQueue], or
// [task.ErrNoTask] for a RetryOf that
// is not there, or is of the plan: [task.ErrNoPlan], [task.ErrPlanState], [conn.ErrGrown], a *[NeedError]; then none is opened.
func (o *Opening) Send(ctx context.Context) ([]task.Opened, error) {
	r, err := o.store.RunList(ctx, "open", o.of, o.args...)
	if err != nil {
		return nil, err
	}
	opened, err := o.req.opened(r)
	need, ok := errors.AsType[*NeedError](err)
	if ok && need.Reason == NeedMissing && errors.Is(o.store.absent(ctx, need.ID), task.ErrPurged) {
		need.Reason = NeedPurged
		err = fmt.Errorf("open: %w", need)
	}
	if o.req.Record != nil && err == nil {
		o.req.Record.written(r.Number(2), opened)
	}
	newest := int64(0)
	for i := range opened {
		newest = max(newest, opened[i].ID)
	}
	o.store.Memory.Saw(newest)
	return opened, err
}

// OpenAll is [Tasks.Prepare] and [Opening.Send].
func (s *Tasks) OpenAll(ctx context.Context, req OpenRequest) ([]task.Opened, error) {
	o, err := s.Prepare(req)
	if err != nil {
		return nil, err
	}
	return o.Send(ctx)
}

// opened reads the answer of the script.
func (req *OpenRequest) opened(r conn.Reply) ([]task.Opened, error) {
	switch r.Text(0) {
	case "record":
		return nil, &task.RecordChangedError{Kind: req.Record.Kind, Name: req.Record.Name}
	case "other":
		return nil, fmt.Errorf("open: %w", task.ErrRequestKey)
	case "rules":
		return nil, fmt.Errorf("open: %w", conn.ErrRules)
	case "no queue":
		return nil, NoQueue(r.Text(1))
	case "key":
		return nil, fmt.Errorf("open: %w", &task.KeyTakenError{Key: req.Specs[r.Number(1)-1].Text("key"), Task: r.Number(2)})
	case "no task":
		return nil, fmt.Errorf("open: task %d: %w", req.Specs[r.Number(1)-1].RetryOf, task.ErrNoTask)
	case "plan":
		return nil, fmt.Errorf("open: %w", req.refused(r))
	}
	return remembered(r.Text(1)), nil
}

// remembered reads what a request remembers: the first and the last id, or "=" and each, with "*" if it was there before; a digest
// may follow.
func remembered(text string) []task.Opened {
	ids := strings.Fields(strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz"))
	if first, last := conn.IDOf(ids[0]), conn.IDOf(ids[len(ids)-1]); len(ids) == 2 && first > 0 && last > 0 {
		opened := make([]task.Opened, last-first+1)
		for i := range opened {
			opened[i].ID = first + int64(i)
		}
		return opened
	}
	opened := make([]task.Opened, 0, len(ids))
	for _, id := range ids {
		id, was := strings.CutSuffix(id, "*")
		if n := conn.IDOf(id); n > 0 {
			opened = append(opened, task.Opened{ID: n, Existing: was})
		}
	}
	return opened
}

// submissionTTL is how long a task has its key where the request does not say.
const submissionTTL = 7 * 24 * time.Hour

// versionText is a version of the rules as scripts compare it, empty for any.
func versionText(rules int64) string {
	if rules == 0 {
		return ""
	}
	return strconv.FormatInt(rules-1, 10)
}

// Names of hash fields of a task that other records have too.
const (
	QueueField     = "queue"
	PlanField      = "plan"
	ResourcesField = "resources"
	ClassField     = "class" // of a task, a queue and a round, each its own
	// AvoidField is until when which node leaves a task to others that has failed there: "1700000000.000000 node"; or until
	// when only the workers named take it, which keep its version: "1700000000.000000 /w1/w2/", "/" for none.
	AvoidField = "avoid"
	startField = "start_after"
)

// Grow is where in a step of a plan the tasks of a request stand.
type Grow struct {
	// Step is its place among those that were kept, from 0; Before is how many of its tasks were opened before, Of
	// how many it will have.
	Step, Before, Of int
	// Source is the task whose lines they are for, 0 for none.
	Source int64
}

func (g *Grow) args(n int) []any {
	if g == nil {
		return []any{0}
	}
	return []any{5, g.Step, g.Before, g.Before + n, g.Of, conn.IDText(g.Source)}
}

// NoQueue is the error of a name that no queue has.
func NoQueue(name string) error { return fmt.Errorf("queue %s: %w", conn.Quote(name), task.ErrNoQueue) }
