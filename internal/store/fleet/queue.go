package fleet

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Queue returns one queue. The error matches [task.ErrNoQueue].
func (s *Fleet) Queue(ctx context.Context, name string) (task.Queue, error) {
	all, _, err := s.Queues(ctx)
	if err != nil {
		return task.Queue{}, err
	}
	for i := range all {
		if all[i].Name == name {
			return all[i], nil
		}
	}
	return task.Queue{}, tasks.NoQueue(name)
}

// Queues returns all queues, by name, and the time of the reading. The default
// queue is always among them, and so is one that only tasks of other clients
// name.
func (s *Fleet) Queues(ctx context.Context) ([]task.Queue, statemachine.Time, error) {
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
	infos := make([]task.Queue, len(all))
	for i, q := range all {
		infos[i] = q.Empty()
	}
	return infos, now, s.countQueues(ctx, infos, &rules, nodes, now)
}

// allQueues are the queues with a record, the default one, and those of buckets.
func (r *Rules) allQueues() []task.QueueSpec {
	all := slices.Clone(r.Queues)
	add := func(name string) {
		if !slices.ContainsFunc(all, func(q task.QueueSpec) bool { return q.Name == name }) {
			all = append(all, task.ParseQueue(name, nil))
		}
	}
	add(task.DefaultQueue)
	for _, b := range r.Buckets {
		add(b.QueueName())
	}
	slices.SortFunc(all, func(a, b task.QueueSpec) int { return strings.Compare(a.Name, b.Name) })
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

func (s *Fleet) countQueues(ctx context.Context, infos []task.Queue, rules *Rules, nodes []string, now statemachine.Time) error {
	counts := make([]queueCounts, len(infos))
	k := s.Keys
	err := s.Pipelined(ctx, "queues", func(p redis.Pipeliner) {
		for i := range infos {
			c, name := &counts[i], infos[i].Name
			for _, b := range rules.Buckets {
				if b.QueueName() == name {
					ready := k.Ready(b.Name())
					c.buckets = append(c.buckets, bucketCounts{
						b, p.ZCard(ctx, ready), p.ZCount(ctx, ready, "-inf", now.Text()), p.ZRangeWithScores(ctx, ready, 0, 0),
					})
				}
			}
			c.running, c.ended = p.SCard(ctx, k.BusyQueue(name)), p.HGetAll(ctx, k.Tally(name))
			for _, node := range nodes {
				c.nodes = append(c.nodes, p.SCard(ctx, k.BusyBoth(name, node)))
			}
		}
	})
	for i := range infos {
		counts[i].fill(&infos[i], nodes, now)
	}
	return err
}

// fill notes the answers about a queue. What is counted under an unknown outcome is left out.
func (c *queueCounts) fill(q *task.Queue, nodes []string, now statemachine.Time) {
	oldest := statemachine.Never
	for _, b := range c.buckets {
		q.Waiting += b.waiting.Val()
		q.Due += b.due.Val()
		q.Lines = append(q.Lines, task.Line{Bucket: b.Bucket, Due: b.due.Val()})
		for _, head := range b.head.Val() {
			if head.Score*1e6 <= float64(now) { // compared as it is: one without end has no moment
				oldest = min(oldest, statemachine.Time(head.Score*1e6))
			}
		}
	}
	if oldest != statemachine.Never {
		q.Oldest = task.Moment(oldest)
	}
	q.Running = c.running.Val()
	for i, n := range c.nodes {
		if n.Val() > 0 {
			q.RunningByNode[nodes[i]] = n.Val()
		}
	}
	f := tasks.FieldReader{Get: func(field string) string { return c.ended.Val()[field] }}
	for _, outcome := range statemachine.Outcomes() {
		retried := int64(f.Count("retried:" + string(outcome)))
		q.Retried += retried
		q.RetriedAs[outcome] = retried
		if n := int64(f.Count(string(outcome))) - retried; n > 0 {
			q.Ended[outcome] = n
		}
	}
}
