package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// QueueInfo is a queue and what lies in it.
type QueueInfo struct {
	task.Queue
	// Waiting tasks are open, whenever they start; Due ones may start now.
	Waiting, Due int64
	// Buckets are those of its tasks.
	Buckets []BucketInfo
	// Oldest is since when the oldest due task may start; 0 if none is due.
	Oldest statemachine.Time
	// Running is the number of rounds under way, Nodes the same by node.
	Running int64
	Nodes   map[string]int64
	// Ended counts the tasks that came to an outcome since the queue exists.
	Ended map[statemachine.State]int64
}

// BucketInfo is a bucket and how many of its tasks may start now.
type BucketInfo struct {
	task.Bucket
	Due int64
}

func noQueue(name string) error { return fmt.Errorf("queue %s: %w", quote(name), ErrNoQueue) }

// Queue returns one queue. The error matches [ErrNoQueue].
func (s *Store) Queue(ctx context.Context, name string) (QueueInfo, error) {
	all, _, err := s.Queues(ctx)
	if err != nil {
		return QueueInfo{}, err
	}
	for i := range all {
		if all[i].Name == name {
			return all[i], nil
		}
	}
	return QueueInfo{}, noQueue(name)
}

// Queues returns all queues, by name, and the time of the reading. The default
// queue is always among them, and so is one that only tasks of other clients
// name.
func (s *Store) Queues(ctx context.Context) ([]QueueInfo, statemachine.Time, error) {
	rules, err := s.Rules(ctx, "")
	if err != nil {
		return nil, 0, err
	}
	nodes, err := s.nodeNames(ctx)
	if err != nil {
		return nil, 0, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, 0, err
	}
	all := rules.allQueues()
	infos := make([]QueueInfo, len(all))
	for i, q := range all {
		infos[i] = QueueInfo{Queue: q, Nodes: map[string]int64{}, Ended: map[statemachine.State]int64{}}
	}
	return infos, now, s.countQueues(ctx, infos, &rules, nodes, now)
}

// allQueues are the queues with a record, the default one, and those of buckets.
func (r *Rules) allQueues() []task.Queue {
	all := slices.Clone(r.Queues)
	add := func(name string) {
		if !slices.ContainsFunc(all, func(q task.Queue) bool { return q.Name == name }) {
			all = append(all, task.NewQueue(name))
		}
	}
	add(task.DefaultQueue)
	for _, b := range r.Buckets {
		add(b.QueueName())
	}
	slices.SortFunc(all, func(a, b task.Queue) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// queueCounts are the answers about one queue.
type queueCounts struct {
	buckets []bucketCounts
	running *redis.IntCmd
	nodes   []*redis.IntCmd
	ended   *redis.MapStringStringCmd
}

type bucketCounts struct {
	task.Bucket
	waiting, due *redis.IntCmd
	head         *redis.ZSliceCmd
}

func (s *Store) countQueues(ctx context.Context, infos []QueueInfo, rules *Rules, nodes []string, now statemachine.Time) error {
	counts := make([]queueCounts, len(infos))
	k := s.keys
	err := s.pipelined(ctx, "queues", func(p redis.Pipeliner) {
		for i := range infos {
			c, name := &counts[i], infos[i].Name
			for _, b := range rules.Buckets {
				if b.QueueName() == name {
					ready := k.ready(b.Name())
					c.buckets = append(c.buckets, bucketCounts{
						b, p.ZCard(ctx, ready), p.ZCount(ctx, ready, "-inf", now.Text()), p.ZRangeWithScores(ctx, ready, 0, 0),
					})
				}
			}
			c.running, c.ended = p.SCard(ctx, k.busyQueue(name)), p.HGetAll(ctx, k.tally(name))
			for _, node := range nodes {
				c.nodes = append(c.nodes, p.SCard(ctx, k.busyBoth(name, node)))
			}
		}
	})
	for i := range infos {
		infos[i].fill(&counts[i], nodes, now)
	}
	return err
}

func (q *QueueInfo) fill(c *queueCounts, nodes []string, now statemachine.Time) {
	for _, b := range c.buckets {
		q.Waiting += b.waiting.Val()
		q.Due += b.due.Val()
		q.Buckets = append(q.Buckets, BucketInfo{b.Bucket, b.due.Val()})
		for _, head := range b.head.Val() {
			if head.Score*1e6 > float64(now) { // compared as it is: one without end has no moment
				continue
			}
			if at := statemachine.Time(head.Score * 1e6); q.Oldest == 0 || at < q.Oldest {
				q.Oldest = at
			}
		}
	}
	q.Running = c.running.Val()
	for i, n := range c.nodes {
		if n.Val() > 0 {
			q.Nodes[nodes[i]] = n.Val()
		}
	}
	f := fieldReader{get: func(field string) string { return c.ended.Val()[field] }}
	for state := range c.ended.Val() {
		q.Ended[statemachine.State(state)] = int64(f.count(state))
	}
}
