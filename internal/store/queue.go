package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
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
	// Oldest is since when the oldest due task may start; 0 if none is due.
	Oldest statemachine.Time
	// Running is the number of rounds under way, Nodes the same by node.
	Running int64
	Nodes   map[string]int64
	// Ended counts the tasks that came to an outcome since the queue exists.
	Ended map[statemachine.State]int64
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
	add(DefaultQueue)
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
						p.ZCard(ctx, ready), p.ZCount(ctx, ready, "-inf", now.Text()), p.ZRangeWithScores(ctx, ready, 0, 0),
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

// Waiting is a task in a bucket. Due is since when, or from when, it may start.
type Waiting struct {
	ID  int64
	Due statemachine.Time
}

// QueueLine is what is due in one bucket.
type QueueLine struct {
	Bucket task.Bucket
	// First are those that are claimed first, in that order.
	First []Waiting
	// Due is how many are due. Before is how many of those are claimed before the task asked about.
	Due, Before int64
}

// Lines returns, for all buckets where anything is due at the moment at, the first
// few, at most limit, and how many are in front of w, a task that waits in b or
// would if it were free. With no id in w, and in buckets of other queues, none is
// in front. Who became due at the same moment counts as in front.
func (s *Store) Lines(ctx context.Context, b task.Bucket, w Waiting, at statemachine.Time, limit int) ([]QueueLine, error) {
	rules, err := s.Rules(ctx, "")
	if err != nil {
		return nil, err
	}
	looks := make([]look, len(rules.Buckets))
	err = s.pipelined(ctx, "lines", func(p redis.Pipeliner) {
		for i, other := range rules.Buckets {
			q, key := rules.queueOf(other), s.keys.ready(other.Name())
			looks[i] = look{bucket: other, first: firstDue(ctx, p, key, q.Order, at, limit), due: p.ZCount(ctx, key, "-inf", at.Text())}
			if w.ID != 0 && other.QueueName() == b.QueueName() {
				from, to := inFront(q, other.Priority, b.Priority, w.Due, at)
				looks[i].before = p.ZCount(ctx, key, from, to)
				looks[i].self = p.ZScore(ctx, key, member(w.ID))
			}
		}
	})
	var lines []QueueLine
	for _, l := range looks {
		if err == nil && l.due.Val() > 0 {
			lines = append(lines, l.line(w, at))
		}
	}
	return lines, err
}

// look are the answers about one bucket.
type look struct {
	bucket      task.Bucket
	first       *redis.ZSliceCmd
	due, before *redis.IntCmd
	self        *redis.FloatCmd
}

func (l *look) line(w Waiting, at statemachine.Time) QueueLine {
	line := QueueLine{Bucket: l.bucket, Due: l.due.Val()}
	for _, z := range l.first.Val() {
		line.First = append(line.First, waiting(z))
	}
	if l.before == nil {
		return line
	}
	line.Before = l.before.Val()
	if l.self.Err() == nil && w.Due <= at { // it is not in front of itself
		line.Before = max(0, line.Before-1)
	}
	return line
}

func (r *Rules) queueOf(b task.Bucket) task.Queue {
	q, _ := r.queue(b.QueueName())
	return q
}

func firstDue(ctx context.Context, p redis.Pipeliner, key string, order task.Order, at statemachine.Time, limit int) *redis.ZSliceCmd {
	by := &redis.ZRangeBy{Min: "-inf", Max: at.Text(), Count: int64(limit)}
	if order == task.Lifo {
		return p.ZRevRangeByScoreWithScores(ctx, key, by)
	}
	return p.ZRangeByScoreWithScores(ctx, key, by)
}

func waiting(z redis.Z) Waiting {
	text, _ := z.Member.(string)
	id, _ := strconv.ParseInt(text[min(1, len(text)):], 10, 64)
	return Waiting{ID: id, Due: statemachine.Time(z.Score*1e6 + 0.5)}
}

// inFront is which scores in a bucket of the priority other come before a task of
// priority mine that is due since then: whoever has a higher rank, which is the priority and
// one for each aging waited, and of the same rank those before it in the order of the queue.
func inFront(q task.Queue, other, mine int, due, at statemachine.Time) (from, to string) {
	aging := q.EffectiveAging()
	if aging <= 0 {
		return strictlyInFront(q, cmp.Compare(other, mine), due, at)
	}
	agings := int64(max(0, at.Sub(due))/aging) + int64(mine-other) // waited for by who has the same rank
	if agings < 0 {
		return "-inf", at.Text()
	}
	youngest := at.Add(-statemachine.Duration(agings) * aging)
	return "-inf", max(0, youngest.Add(-aging), min(due, youngest)).Text()
}

// strictlyInFront is inFront where the priority alone makes the rank.
func strictlyInFront(q task.Queue, higher int, due, at statemachine.Time) (from, to string) {
	switch {
	case higher > 0:
		return "-inf", at.Text()
	case higher < 0:
		return "(" + at.Text(), at.Text()
	case q.Order == task.Lifo:
		return due.Text(), at.Text()
	default:
		return "-inf", min(due, at).Text()
	}
}
