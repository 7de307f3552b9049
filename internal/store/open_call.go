package store

import (
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// submissionTTL is how long a key of a submission is remembered where the
// request does not say.
const submissionTTL = 7 * 24 * time.Hour

// openCall gathers the arguments of the script.
type openCall struct {
	store   *Store
	plan    int64
	grow    *Grow
	count   int // of tasks so far
	buckets bucketArgs
	queues  []any
	keys    []string // that tasks name
	place   map[string]int
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
	if q := spec.Bucket.QueueName(); q != DefaultQueue && !slices.Contains(c.queues, any(q)) {
		c.queues = append(c.queues, q)
	}
	key, how := c.identity(spec)
	c.tasks = append(c.tasks, c.buckets.index(spec.Bucket), flag(spec.Held != ""), spec.StartAfter, deadline, key, how,
		replayed(spec), len(values))
	c.tasks = append(c.tasks, values...)
	return c.needs(spec)
}

// replayed is the id of the task that is replayed, as text.
func replayed(spec *Spec) string {
	if spec.ReplayOf > 0 {
		return strconv.FormatInt(spec.ReplayOf, 10)
	}
	return ""
}

// identity is the place of the key that says whether the task is there already.
func (c *openCall) identity(spec *Spec) (place any, how string) {
	var name string
	k := c.store.keys
	switch {
	case spec.RetryOf > 0:
		name, how = k.task(spec.RetryOf), "retry"
	case spec.Key != "":
		name, how = k.submitted(spec.Bucket.QueueName(), spec.Key), "key"
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

func (c *openCall) allKeys(request string) []string {
	k := c.store.keys
	return slices.Concat([]string{
		k.meta(), k.taskID(), k.request(request), k.state(statemachine.Open), k.due(), k.buckets(),
		k.queues(), k.state(statemachine.Blocked), k.setAside(),
	}, c.buckets.keys(k), c.keys)
}

func (c *openCall) args(req *OpenRequest) []any {
	ttl, life, n := req.KeyTTL, req.Life, len(req.Specs)
	if ttl <= 0 {
		ttl = submissionTTL
	}
	if life <= 0 {
		life = requestTTL
	}
	args := []any{
		c.store.keys.taskPrefix(), int(life.Seconds()), n, string(statemachine.Open), Protocol,
		int64(ttl.Seconds()), string(statemachine.Blocked), c.store.keys.rules(), planText(c.plan),
	}
	args = append(append(args, c.store.keys.planning()...), c.grow.args(c.store.keys, c.plan, n)...)
	args = append(args, len(c.buckets.names))
	for _, b := range c.buckets.names {
		args = append(args, b)
	}
	args = append(append(args, len(c.queues)), c.queues...)
	return append(append(args, c.tasks...), req.Digest)
}
