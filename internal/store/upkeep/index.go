package upkeep

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// IndexKind is a family of sets that say which tasks somebody must look at. A
// task belongs to them because of what its own record says.
type IndexKind string

// The kinds of indices.
const (
	IndexDue   IndexKind = "due"   // tasks with a deadline
	IndexReady IndexKind = "ready" // open tasks, of a bucket
	IndexHeld  IndexKind = "held"  // rounds, of a worker's sessions
	IndexStop  IndexKind = "stop"  // rounds that a worker is to stop
	// IndexArchived is archived tasks that may go, of an outcome.
	IndexArchived IndexKind = "archived"
	// IndexState is a state set; only malformed ids do not belong there.
	IndexState IndexKind = "state"
)

// Index is one such set.
type Index struct {
	Kind IndexKind
	// Of is the name of the bucket, worker, outcome or state; empty for IndexDue.
	Of string
}

// String names the index as its key does, without the namespace.
func (x Index) String() string {
	if x.Kind == IndexState || x.Of == "" {
		return cmp.Or(x.Of, string(x.Kind))
	}
	return string(x.Kind) + ":" + x.Of
}

// Indices are all there may be, of the buckets on the list and the workers that
// are known.
func (s *Upkeep) Indices(ctx context.Context) ([]Index, error) {
	buckets, err := s.tasks.Buckets(ctx)
	if err != nil {
		return nil, err
	}
	var registered, leased *redis.StringSliceCmd
	err = s.Pipelined(ctx, "indices", func(p redis.Pipeliner) {
		registered = p.SMembers(ctx, s.Keys.Worker())
		leased = p.ZRange(ctx, s.Keys.Lease(), 0, -1)
	})
	if err != nil {
		return nil, err
	}
	workers := slices.Concat(registered.Val(), leased.Val())
	slices.Sort(workers)
	all := []Index{{Kind: IndexDue}}
	for _, outcome := range statemachine.Outcomes() {
		all = append(all, Index{IndexArchived, string(outcome)})
	}
	for _, b := range buckets {
		all = append(all, Index{IndexReady, b.Name()})
	}
	for _, name := range slices.Compact(workers) {
		all = append(all, Index{IndexHeld, name}, Index{IndexStop, name})
	}
	return all, nil
}

// indexScan is about how many members one call of [Upkeep.Members] reads.
const indexScan = 500

// Members reads some members of an index from the cursor on, and where to go
// on; begin and end are 0. One that moves meanwhile may come twice. A key of another
// type has none.
func (s *Upkeep) Members(ctx context.Context, x Index, cursor uint64) (members []string, next uint64, err error) {
	command, sorted := s.Redis.ZScan, true
	if x.Kind == IndexHeld || x.Kind == IndexStop {
		command, sorted = s.Redis.SScan, false
	}
	return s.Scanned("members", command(ctx, s.indexKey(x), cursor, "", indexScan), sorted)
}

func (s *Upkeep) indexKey(x Index) string {
	switch x.Kind {
	case IndexReady:
		return s.Keys.Ready(x.Of)
	case IndexHeld:
		return s.Keys.Held(x.Of)
	case IndexStop:
		return s.Keys.Stop(x.Of)
	case IndexArchived:
		return s.Keys.ArchivedAs(statemachine.State(x.Of))
	case IndexState:
		return s.Keys.State(statemachine.State(x.Of))
	default:
		return s.Keys.Due()
	}
}

// Strays returns those of some members of an index that do not belong there:
// they are no id, or that of a task that is elsewhere. At most a few hundred a call.
func (s *Upkeep) Strays(ctx context.Context, x Index, members []string) ([]string, error) {
	return s.strays(ctx, "strays", x, members)
}

// Unlist takes members out of an index as far as they do not belong there when
// it is done, and returns those. No task changes.
func (s *Upkeep) Unlist(ctx context.Context, x Index, members []string) ([]string, error) {
	return s.strays(ctx, "unlist", x, members)
}

func (s *Upkeep) strays(ctx context.Context, script string, x Index, members []string) ([]string, error) {
	if len(members) == 0 {
		return nil, nil
	}
	bucket, err := x.bucket()
	if err != nil {
		return nil, err
	}
	args := append([]any{string(x.Kind), x.Of, string(statemachine.Open), string(statemachine.Running)}, bucket...)
	r, err := s.RunList(ctx, script, conn.Subject{More: []string{s.indexKey(x)}}, conn.Args(args, members...)...)
	return r.Texts(), err
}

// bucketFields are the fields that say which bucket a task is in, and their
// defaults, in the order of strays.lua.
var bucketFields = []struct{ name, otherwise string }{
	{"queue", task.DefaultQueue}, {"env", ""}, {"labels", ""}, {"priority", "0"}, {"resources", ""}, {"class", ""},
}

// bucket is what the tasks in an index of ready ones have in bucketFields.
func (x Index) bucket() ([]any, error) {
	var b task.Bucket
	if x.Kind == IndexReady {
		var err error
		if b, err = task.ParseBucket(x.Of); err != nil {
			return nil, err
		}
	}
	given := map[string]string{}
	for pair := range slices.Chunk(b.Fields(), 2) {
		given[pair[0]] = pair[1]
	}
	values := make([]any, len(bucketFields))
	for i, f := range bucketFields {
		values[i] = cmp.Or(given[f.name], f.otherwise)
	}
	return values, nil
}

// IDOf is the id that a member of the index stands for, or 0 if it is malformed.
func (x Index) IDOf(text string) int64 {
	if x.Kind == IndexReady && text != "" {
		text = text[1:]
	}
	return conn.IDOf(text)
}

// Census is what all ids that were given out have become, as Redis had it at one
// moment.
type Census struct {
	// Opened is the newest id.
	Opened int64
	// Listed is how many ids each state set lists.
	Listed map[statemachine.State]int64
	// Aside are the ids of dead letters.
	Aside []int64
	// Purged is how many archived tasks have left Redis.
	Purged int64
}

// Census counts ids and sets at one moment. What the sets list beyond the ids
// that were given out is counted as well.
func (s *Upkeep) Census(ctx context.Context) (Census, error) {
	all := statemachine.States()
	sizes := make([]*redis.IntCmd, len(all))
	var last *redis.StringCmd
	var aside, purged *redis.StringSliceCmd
	_, err := s.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		last, aside = p.Get(ctx, s.Keys.TaskID()), p.HKeys(ctx, s.Keys.DeadLetters())
		purged = p.HVals(ctx, s.Keys.Purged())
		for i, st := range all {
			sizes[i] = p.ZCard(ctx, s.Keys.State(st))
		}
		return nil
	})
	if err != nil && !conn.IsNil(err) {
		return Census{}, s.Failed("census", err)
	}
	a := Census{Listed: make(map[statemachine.State]int64, len(all))}
	a.Opened, _ = last.Int64()
	for _, text := range aside.Val() {
		a.Aside = append(a.Aside, conn.IDOf(text))
	}
	for _, text := range purged.Val() {
		n, _ := strconv.ParseInt(text, 10, 64)
		a.Purged += n
	}
	for i, st := range all {
		a.Listed[st] = sizes[i].Val()
	}
	return a, nil
}
