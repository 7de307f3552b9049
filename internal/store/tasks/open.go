package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
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
	// KeyTTL is how long the keys of the specs are remembered; 0 for 7 days.
	KeyTTL time.Duration
	// Plan is the plan that all of them belong to, 0 for none.
	Plan task.PlanID
	// Rules is the version of the rules from which the defaults of queues were taken; 0: whatever they are.
	Rules int64
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
	call := openCall{store: s, req: &o.req}
	for i := range req.Specs {
		if err := call.add(i); err != nil {
			return nil, fmt.Errorf("open: task %d of the request: %w", i, err)
		}
	}
	o.of = conn.Subject{Request: req.Key, More: append(call.buckets.keys(s.Keys), call.keys...)}
	o.args = call.args()
	return o, nil
}

// Send creates the tasks, all or none, and returns them in the order of the specs. It may be called again: see [OpenRequest].
// The error matches [conn.ErrRules] if they are others now, [task.ErrRequestKey], [task.ErrNoQueue], or
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
	for i := range opened {
		o.store.Memory.Saw(opened[i].ID)
	}
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
	case "other":
		return nil, fmt.Errorf("open: %w", task.ErrRequestKey)
	case "rules":
		return nil, fmt.Errorf("open: %w", conn.ErrRules)
	case "no queue":
		return nil, NoQueue(r.Text(1))
	case "no task":
		return nil, fmt.Errorf("open: task %d: %w", req.Specs[r.Number(1)-1].RetryOf, task.ErrNoTask)
	case "plan":
		return nil, fmt.Errorf("open: %w", req.refused(r))
	}
	opened := make([]task.Opened, len(r))
	for i := range r {
		one := r.List(i)
		opened[i] = task.Opened{ID: one.Number(0), Existing: one.Text(1) != ""}
	}
	return opened, nil
}

// submissionTTL is how long a key of a submission is remembered where the
// request does not say.
const submissionTTL = 7 * 24 * time.Hour

// openCall gathers the arguments of the script.
type openCall struct {
	store   *Tasks
	req     *OpenRequest
	buckets bucketArgs
	queues  []any
	keys    []string // that tasks name
	place   map[string]int
	tasks   []any
}

// add adds the task at a place of the request.
func (c *openCall) add(place int) error {
	d := &c.req.Specs[place]
	if err := CheckNeeds(d, place, c.req.Plan > 0); err != nil {
		return err
	}
	deadline := d.Text("end_before")
	if deadline == statemachine.Never.Text() {
		deadline = ""
	}
	bucket := d.Bucket()
	if q := bucket.QueueName(); q != task.DefaultQueue && !slices.Contains(c.queues, any(q)) {
		c.queues = append(c.queues, q)
	}
	key, how := c.identity(d)
	fields := values(d, c.store.Namespace())
	c.tasks = append(c.tasks, c.buckets.index(bucket), conn.Flag(d.Text("hold") != ""), d.Text(startField), deadline, key, how,
		conn.IDText(d.ReplayOf), len(fields))
	c.tasks = append(c.tasks, fields...)
	c.tasks = append(c.tasks, 2*len(d.Needs))
	for _, n := range d.Needs {
		to := strconv.FormatInt(n.Task, 10)
		if n.Task == 0 {
			to = "@" + strconv.Itoa(n.Index+1)
		}
		c.tasks = append(c.tasks, to, string(cmp.Or(n.On, task.NeedsSuccess)))
	}
	return nil
}

// identity is the place of the key that says whether the task is there already.
func (c *openCall) identity(d *task.Definition) (place any, how string) {
	var name string
	k := c.store.Keys
	switch key := d.Text("key"); {
	case d.RetryOf > 0:
		name, how = k.Task(d.RetryOf), "retry"
	case key != "":
		name, how = k.Submitted(d.Text(QueueField), key), "key"
	default:
		return "", ""
	}
	if c.place == nil {
		c.place = map[string]int{}
	}
	at, known := c.place[name]
	if !known {
		c.keys = append(c.keys, name)
		at = len(c.keys)
		c.place[name] = at
	}
	return at, how
}

// versionText is a version of the rules as scripts compare it, empty for any.
func versionText(rules int64) string {
	if rules == 0 {
		return ""
	}
	return strconv.FormatInt(rules-1, 10)
}

func (c *openCall) args() []any {
	req := c.req
	ttl, life, n := req.KeyTTL, req.Life, len(req.Specs)
	if ttl <= 0 {
		ttl = submissionTTL
	}
	if life <= 0 {
		life = RequestTTL
	}
	args := []any{
		int(life.Seconds()), n, string(statemachine.Open), conn.Protocol,
		int64(ttl.Seconds()), string(statemachine.Blocked), conn.IDText(req.Plan), versionText(req.Rules),
	}
	args = append(args, req.Grow.args(n)...)
	args = append(args, len(c.buckets.names))
	for _, b := range c.buckets.names {
		args = append(args, b)
	}
	args = append(append(args, len(c.queues)), c.queues...)
	return append(append(args, c.tasks...), req.Digest)
}

// Names of hash fields of a task that other records have too.
const (
	QueueField     = "queue"
	PlanField      = "plan"
	ResourcesField = "resources"
	ClassField     = "class" // of a task, a queue and a round, each its own
	startField     = "start_after"
)

// values are the hash fields at creation, to which the script adds id and the stamp.
func values(d *task.Definition, namespace string) []any {
	fields := append(d.Values(), "round", "0", "fails", "0", "timeouts", "0", "log", "", "namespace", namespace)
	add := func(name string, n int64) {
		if n > 0 {
			fields = append(fields, name, strconv.FormatInt(n, 10))
		}
	}
	add("retry_of", d.RetryOf)
	add("replay_of", d.ReplayOf)
	if d.ReplayOf > 0 {
		fields = append(fields, "replay_round", strconv.Itoa(d.ReplayRound))
	}
	if d.Grows {
		fields = append(fields, "feeds", "1", "grows", "1")
	}
	v := make([]any, len(fields))
	for i, text := range fields {
		v[i] = text
	}
	return v
}

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
