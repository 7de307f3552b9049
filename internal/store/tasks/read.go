package tasks

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Task returns one task whole. The error matches [task.ErrNoTask] if there is none,
// and [task.ErrPurged] if it was purged. A damaged task has its Err set.
func (s *Tasks) Task(ctx context.Context, id int64) (*TaskHeader, error) {
	tasks, err := s.TasksByID(ctx, []int64{id})
	if err != nil {
		return nil, err
	}
	if tasks[0] == nil {
		return nil, s.absent(ctx, id)
	}
	return tasks[0], nil
}

// TasksByID reads tasks whole, in the order of the ids; nil for those that are not
// there.
func (s *Tasks) TasksByID(ctx context.Context, ids []int64) ([]*TaskHeader, error) {
	r := reader{keys: s.Keys, ids: ids}
	if err := s.Pipelined(ctx, "read", func(p redis.Pipeliner) { r.queue(ctx, p) }); err != nil {
		return nil, err
	}
	return r.tasks(), nil
}

// reader reads tasks whole, in a pipeline.
type reader struct {
	keys     conn.Keys
	ids      []int64
	hashes   []*redis.MapStringStringCmd
	archived []*redis.FloatCmd
}

func (r *reader) queue(ctx context.Context, p redis.Pipeliner) {
	r.hashes, r.archived = make([]*redis.MapStringStringCmd, len(r.ids)), make([]*redis.FloatCmd, len(r.ids))
	archived := r.keys.State(statemachine.Archived)
	for i, id := range r.ids {
		r.hashes[i] = p.HGetAll(ctx, r.keys.Task(id))
		r.archived[i] = p.ZScore(ctx, archived, strconv.FormatInt(id, 10))
	}
}

// tasks are those that were read, in the order of the ids; nil for those that are not there.
func (r *reader) tasks() []*TaskHeader {
	tasks := make([]*TaskHeader, len(r.ids))
	for i, id := range r.ids {
		if fields, err := r.hashes[i].Result(); err != nil || len(fields) > 0 {
			tasks[i] = decodeTask(id, fields)
			if r.archived[i].Err() == nil {
				tasks[i].archivedByForeigner()
			}
		}
	}
	return tasks
}

// archivedByForeigner reads the original's archive, which leaves the hash's
// state at the outcome: the archived set wins.
func (t *TaskHeader) archivedByForeigner() {
	if t.State.IsOutcome() {
		t.Outcome, t.State = t.State, statemachine.Archived
	}
}

// ArchivedTask is a task that was archived, read from the fields of its hash that were kept elsewhere.
func ArchivedTask(id int64, fields map[string]string) *TaskHeader {
	t := decodeTask(id, fields)
	t.archivedByForeigner()
	return t
}

func decodeTask(id int64, fields map[string]string) *TaskHeader {
	t := decodeHeader(id, wholeFields(fields))
	t.Fields = fields
	return &t
}

// Count returns the number of tasks in each state.
func (s *Tasks) Count(ctx context.Context) (map[statemachine.State]int64, error) {
	all := statemachine.States()
	cmds := make([]*redis.IntCmd, len(all))
	_, err := s.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, st := range all {
			cmds[i] = p.ZCard(ctx, s.Keys.State(st))
		}
		return nil
	})
	if err != nil {
		return nil, s.Failed("count", err)
	}
	counts := make(map[statemachine.State]int64, len(all))
	for i, st := range all {
		counts[st] = cmds[i].Val()
	}
	return counts, nil
}

// LastID is the id of the newest task, 0 if there was none.
func (s *Tasks) LastID(ctx context.Context) (int64, error) {
	n, err := s.Redis.Get(ctx, s.Keys.TaskID()).Int64()
	if err != nil && !conn.IsNil(err) {
		return 0, s.Failed("last id", err)
	}
	s.Memory.Saw(n)
	return n, nil
}

// IDs lists the ids of a state by rank, oldest first, or newest first where
// reverse is set.
func (s *Tasks) IDs(ctx context.Context, state statemachine.State, offset, limit int64, reverse bool) ([]int64, error) {
	texts, err := s.Redis.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: s.Keys.State(state), Start: offset, Stop: offset + limit - 1, Rev: reverse,
	}).Result()
	if err != nil {
		return nil, s.Failed("list", err)
	}
	return idsOf(texts), nil
}

// Ranked is a task as a state lists it, in the order of Score; see [conn.Keys.State].
type Ranked struct {
	State statemachine.State
	ID    int64
	Score float64
}

// Newest lists tasks one state after the other, of each what came into it last first: up to most, and fewer only if there are no more.
// Unless after is zero, they are those behind it in the first state, also if it has left its place there.
func (s *Tasks) Newest(ctx context.Context, states []statemachine.State, after Ranked, most int) ([]Ranked, error) {
	sets := make([]string, len(states))
	for i, state := range states {
		sets[i] = s.Keys.State(state)
	}
	score := strconv.FormatFloat(after.Score, 'g', -1, 64)
	r, err := s.RunList(ctx, "newest", conn.Subject{More: sets}, score, conn.IDText(after.ID), most)
	if err != nil {
		return nil, err
	}
	found := make([]Ranked, 0, len(r)/3)
	for of := range slices.Chunk(r, 3) {
		score, _ := strconv.ParseFloat(of.Text(2), 64)
		found = append(found, Ranked{states[of.Number(0)], of.Number(1), score})
	}
	return found, nil
}

// Page is a part of a set by rank, the oldest first. The zero Page is empty.
type Page struct {
	State       statemachine.State
	First, Most int
}

// Head is what a page came to: how many tasks are in the state altogether, and the ids of the page.
type Head struct {
	Total int
	IDs   []int64
}

// Heads reads pages, in one trip.
func (s *Tasks) Heads(ctx context.Context, pages ...Page) ([]Head, error) {
	totals, lists := make([]*redis.IntCmd, len(pages)), make([]*redis.StringSliceCmd, len(pages))
	err := s.Pipelined(ctx, "list", func(p redis.Pipeliner) {
		for i, page := range pages {
			totals[i], lists[i] = p.ZCard(ctx, s.Keys.State(page.State)), s.queuePage(ctx, p, page)
		}
	})
	if err != nil {
		return nil, err
	}
	heads := make([]Head, len(pages))
	for i := range pages {
		heads[i] = Head{int(totals[i].Val()), pageOf(lists[i])}
	}
	return heads, nil
}

// queuePage reads a page in a pipeline; pageOf are its ids then.
func (s *Tasks) queuePage(ctx context.Context, p redis.Pipeliner, page Page) *redis.StringSliceCmd {
	if page.Most <= 0 {
		return nil
	}
	return p.ZRange(ctx, s.Keys.State(page.State), int64(page.First), int64(page.First+page.Most-1))
}

func pageOf(list *redis.StringSliceCmd) []int64 {
	if list == nil {
		return nil
	}
	return idsOf(list.Val())
}

// idsOf are the ids that a set lists, without those that are not numbers.
func idsOf(texts []string) []int64 {
	ids := make([]int64, 0, len(texts))
	for _, text := range texts {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Buckets returns all buckets ever used; the default bucket is always among them.
func (s *Tasks) Buckets(ctx context.Context) ([]task.Bucket, error) {
	names, err := s.Redis.SMembers(ctx, s.Keys.Buckets()).Result()
	if err != nil {
		return nil, s.Failed("buckets", err)
	}
	buckets := []task.Bucket{{}}
	for _, name := range names {
		if b, err := task.ParseBucket(name); err == nil && b != (task.Bucket{}) {
			buckets = append(buckets, b)
		}
	}
	return buckets, nil
}

// Fields reads some hash fields of tasks, in the order of the ids: what a list
// or a wait needs, without outputs and logs. A task has no entry for a field it
// lacks; one that is not there, or is no hash, has a nil map.
func (s *Tasks) Fields(ctx context.Context, ids []int64, names ...string) ([]map[string]string, error) {
	cmds := make([]*redis.SliceCmd, len(ids))
	err := s.Pipelined(ctx, "read fields", func(p redis.Pipeliner) {
		for i, id := range ids {
			cmds[i] = p.HMGet(ctx, s.Keys.Task(id), names...)
		}
	})
	if err != nil {
		return nil, err
	}
	found := make([]map[string]string, len(ids))
	for i, c := range cmds {
		found[i] = TextsOf(names, c.Val())
	}
	return found, nil
}

// TextsOf pairs names with the values that are there; nil without any.
func TextsOf(names []string, values []any) map[string]string {
	var m map[string]string
	for i, v := range values {
		if text, ok := v.(string); ok {
			if m == nil {
				m = make(map[string]string, len(names))
			}
			m[names[i]] = text
		}
	}
	return m
}
