package fleet

import (
	"context"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
)

// recountSets is how many sets one call of [Fleet.Recount] looks at, recountIDs
// about how many ids in them: a script blocks Redis while it runs.
const (
	recountSets = 1000
	recountIDs  = 1000
)

// counter is a set, or a hash, that counts rounds: of a queue, of a node, or of
// both.
type counter struct {
	key, queue, node string
	hash             bool
}

// counted are some ids of a counter.
type counted struct {
	counter
	ids []string
}

// recounter is how far [Fleet.Recount] has come: left are the counters that it has
// still to look at, the first of them from cursor on.
type recounter struct {
	mu     sync.Mutex
	left   []counter
	cursor uint64
}

// Recount takes out of the sets that limits are enforced by what does not run any
// more, because another client has moved the task, and wakes who waits for the
// place. Each call looks at the next 1,000 sets or about 1,000 ids, those of queues
// first, so that a server may call it often; it returns how many entries it took
// out. What is missing there, [upkeep.Upkeep.Reindex] puts in.
func (s *Fleet) Recount(ctx context.Context) (mended int, err error) {
	r := &s.recounting
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) == 0 {
		if r.left, err = s.counters(ctx); err != nil {
			return 0, err
		}
		r.cursor = 0
	}
	found, err := s.nextCounted(ctx, r)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	of, args := conn.Subject{}, []any{string(statemachine.Running)}
	for _, c := range found {
		of.More, args = append(of.More, c.key), conn.Args(append(args, c.queue, c.node, len(c.ids)), c.ids...)
	}
	v, err := s.Run(ctx, "recount", of, args...)
	gone, _ := v.(int64)
	return int(gone), err
}

// nextCounted reads on.
func (s *Fleet) nextCounted(ctx context.Context, r *recounter) ([]counted, error) {
	batch := r.left[:min(recountSets, len(r.left))]
	sizes := make([]*redis.IntCmd, len(batch))
	err := s.Pipelined(ctx, "recount", func(p redis.Pipeliner) {
		for i, c := range batch {
			if c.hash {
				sizes[i] = p.HLen(ctx, c.key)
			} else {
				sizes[i] = p.SCard(ctx, c.key)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var found []counted
	for i, c := range batch {
		if n := sizes[i].Val(); n > 0 { // also a key of another type has none
			ids, next, err := s.scan(ctx, &c, r.cursor)
			if err != nil {
				return nil, err
			}
			found = append(found, counted{c, ids})
			if r.cursor = next; next != 0 {
				return found, nil
			}
		}
		r.left, r.cursor = r.left[1:], 0
		if members(found) >= recountIDs {
			break
		}
	}
	return found, nil
}

func members(found []counted) (n int) {
	for i := range found {
		n += len(found[i].ids)
	}
	return n
}

// scan reads some ids of a counter, and where to go on.
func (s *Fleet) scan(ctx context.Context, c *counter, cursor uint64) ([]string, uint64, error) {
	command := s.Redis.SScan
	if c.hash {
		command = s.Redis.HScan
	}
	return s.Scanned("recount", command(ctx, c.key, cursor, "", recountIDs), c.hash)
}

// counters are all that may count rounds, those of queues first.
func (s *Fleet) counters(ctx context.Context) ([]counter, error) {
	rules, err := s.Rules(ctx, "")
	if err != nil {
		return nil, err
	}
	nodes, err := s.nodeNames(ctx)
	if err != nil {
		return nil, err
	}
	k, queues := s.Keys, rules.allQueues()
	all := make([]counter, 0, (len(nodes)+1)*(len(queues)+2))
	for i := range queues {
		all = append(all, counter{key: k.BusyQueue(queues[i].Name), queue: queues[i].Name})
	}
	for _, node := range nodes {
		all = append(all, counter{key: k.BusyNode(node), node: node}, counter{key: k.Used(node), node: node, hash: true})
		for i := range queues {
			all = append(all, counter{key: k.BusyBoth(queues[i].Name, node), queue: queues[i].Name, node: node})
		}
	}
	return all, nil
}

// CountedRound is an entry in what limits are enforced by: the round of a task,
// counted for a queue, a node, or both; empty for any.
type CountedRound struct {
	ID          int64
	Queue, Node string
}

// Counted returns all entries that limits are enforced by, for audits.
func (s *Fleet) Counted(ctx context.Context) ([]CountedRound, error) {
	all, err := s.counters(ctx)
	if err != nil {
		return nil, err
	}
	members := make([]*redis.StringSliceCmd, len(all))
	err = s.Pipelined(ctx, "counted", func(p redis.Pipeliner) {
		for i, c := range all {
			if c.hash {
				members[i] = p.HKeys(ctx, c.key)
			} else {
				members[i] = p.SMembers(ctx, c.key)
			}
		}
	})
	var rounds []CountedRound
	for i, c := range all {
		for _, text := range members[i].Val() {
			id, _ := strconv.ParseInt(text, 10, 64) // a malformed id is that of no task: 0
			rounds = append(rounds, CountedRound{ID: id, Queue: c.queue, Node: c.node})
		}
	}
	return rounds, err
}
