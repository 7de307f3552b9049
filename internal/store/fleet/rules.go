package fleet

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Rules are what decides which tasks a worker of a node may claim, as they
// stand at one moment.
type Rules struct {
	// Version is raised by every change of a queue or a node, and never 0; a claim
	// made under an older version claims nothing (see [ClaimReply]).
	Version int64
	// Known is the version of the list of buckets.
	Known   int64
	Buckets []task.Bucket
	Queues  []task.QueueSpec
	// Node is the record of the node asked for.
	Node task.NodeRecord
}

// Rules reads the rules for the workers of a node. A record that somebody has
// damaged stops only what it is about (see task.ParseQueue and task.ParseNode).
func (s *Fleet) Rules(ctx context.Context, node string) (Rules, error) {
	r, err := s.RunList(ctx, "rules", conn.Subject{Node: node})
	if err != nil {
		return Rules{}, err
	}
	rules := Rules{Version: r.Number(0) + 1, Known: r.Number(1), Node: task.ParseNode(node, r.List(4).Fields())}
	for i := range r.List(2) {
		rules.Buckets = append(rules.Buckets, tasks.BucketOf(r.List(2).Text(i)))
	}
	for i := range r.List(3) {
		q := r.List(3).List(i)
		rules.Queues = append(rules.Queues, task.ParseQueue(q.Text(0), q[1:].Fields()))
	}
	return rules, nil
}

// AddQueue makes a queue; its Created becomes the time of the call. The error
// matches [task.ErrQueueExists] if there is one of the name, or is that of
// [task.QueueSpec.Complete].
func (s *Fleet) AddQueue(ctx context.Context, q task.QueueSpec) error {
	q, err := q.Complete()
	if err != nil {
		return err
	}
	return s.record(ctx, "add", func(*Rules) (recordCall, error) {
		return s.queueCall(&q), nil
	})
}

// SetQueue applies change to a queue with optimistic locking: it begins again if
// the record has changed in between. It returns the new queue. The error
// matches [task.ErrNoQueue], or is that of [ChangedQueue].
func (s *Fleet) SetQueue(ctx context.Context, name string, change func(*task.QueueSpec) error) (task.QueueSpec, error) {
	var after task.QueueSpec
	err := s.record(ctx, "set", func(rules *Rules) (recordCall, error) {
		q, ok := rules.queue(name)
		if !ok {
			return recordCall{}, tasks.NoQueue(name)
		}
		var err error
		after, err = ChangedQueue(q, change)
		return s.queueCall(&after), err
	})
	return after, err
}

// ChangedQueue is a queue after a change, complete; its Created stays. The error is that of
// change or of [task.QueueSpec.Complete], or a *statemachine.FieldError about another name.
func ChangedQueue(q task.QueueSpec, change func(*task.QueueSpec) error) (task.QueueSpec, error) {
	after := q
	if err := change(&after); err != nil {
		return q, err
	}
	if after.Name != q.Name {
		return q, renamed("queue", q.Name, after.Name)
	}
	after.Created = q.Created
	return after.Complete()
}

func renamed(what, from, to string) error {
	return &statemachine.FieldError{Field: what, Value: to, Want: "the name that it has, " + conn.Quote(from) + "; make another one instead"}
}

// RemoveQueue takes a queue away. The error matches [task.ErrNoQueue], or
// [task.ErrQueueInUse] as long as it has tasks that have not ended.
func (s *Fleet) RemoveQueue(ctx context.Context, name string) error {
	if name == task.DefaultQueue {
		return &statemachine.FieldError{Field: tasks.QueueField, Value: name, Want: "another one: the default queue stays"}
	}
	return s.record(ctx, "remove", func(rules *Rules) (recordCall, error) {
		q, ok := rules.queue(name)
		if !ok {
			return recordCall{}, tasks.NoQueue(name)
		}
		call := s.queueCall(&q)
		for _, b := range rules.Buckets {
			if b.QueueName() == name {
				call.bucketKeys = append(call.bucketKeys, s.Keys.Ready(b.Name()), s.Keys.Wake(b.Name()))
				call.buckets = append(call.buckets, b.Name())
			}
		}
		return call, nil
	})
}

// queue finds a queue that may be changed: one with a record, or the default.
func (r *Rules) queue(name string) (task.QueueSpec, bool) {
	for _, q := range r.Queues {
		if q.Name == name {
			return q, true
		}
	}
	return task.ParseQueue(name, nil), name == task.DefaultQueue
}

// Takes reports whether a worker that claims just now may take tasks of a bucket.
func (r *Rules) Takes(w *task.Worker, b task.Bucket) bool {
	queue, _ := r.queue(b.QueueName())
	return w.State == task.WorkerReady && w.Order == task.NoCommand && w.Reason == "" && len(task.Unfit(b, queue, w.Offer())) == 0
}

// queueCall writes q as it is. Defaults that it does not have are dropped,
// whatever the record says of them.
func (s *Fleet) queueCall(q *task.QueueSpec) recordCall {
	k := s.Keys
	call := recordCall{
		name: q.Name,
		keys: []string{k.Queues(), k.Queue(q.Name), k.WakeQueue(q.Name), k.BusyQueue(q.Name), k.Tally(q.Name)},
		set:  q.Fields(),
	}
	for _, key := range task.QueueKeys() {
		if !slices.Contains(call.set, key) {
			call.drop = append(call.drop, key)
		}
	}
	return call
}

// recordCall is what one call of the script record writes.
type recordCall struct {
	name string
	keys []string // those without a name in the script
	set  []string
	drop []string
	// buckets are the names of those of a queue that is removed, bucketKeys the
	// keys: each bucket and its wake list.
	buckets, bucketKeys []string
}

// mostTries bounds how often a change is made anew because others were faster.
const mostTries = 100

// record makes a change from the rules in force until nobody was faster.
func (s *Fleet) record(ctx context.Context, op string, decide func(*Rules) (recordCall, error)) error {
	id := conn.NewToken()
	for range mostTries {
		rules, err := s.Rules(ctx, "")
		if err != nil {
			return err
		}
		call, err := decide(&rules)
		if err != nil {
			return err
		}
		done, err := s.write(ctx, op, id, &rules, call)
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("record: %w: others change the rules all the time", statemachine.ErrConflict)
}

// write reports false if the rules have changed.
func (s *Fleet) write(ctx context.Context, op, id string, rules *Rules, call recordCall) (bool, error) {
	args := []any{call.name, op, rules.Version - 1, rules.Known, id, task.DefaultQueue}
	for _, list := range [][]string{call.set, call.drop, call.buckets} {
		args = conn.Args(append(args, len(list)), list...)
	}
	v, err := s.Run(ctx, "record", conn.Subject{More: slices.Concat(call.keys, call.bucketKeys)}, args...)
	switch {
	case err != nil:
		return false, err
	case v == int64(-2):
		return false, fmt.Errorf("queue %s: %w", conn.Quote(call.name), task.ErrQueueExists)
	case v == int64(-3):
		return false, fmt.Errorf("queue %s: %w", conn.Quote(call.name), task.ErrQueueInUse)
	}
	return v == int64(1), nil
}
