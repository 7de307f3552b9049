package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Inspection is what [Upkeep.Inspect] finds: a task, and the indices that list it.
type Inspection struct {
	Task tasks.TaskHeader
	// Listed are the state sets that list the id; a sound task is in one.
	Listed []statemachine.State
	// Due is when the deadline index has it, or Never.
	Due statemachine.Time
	// InBucket says that its bucket lists it, Unlisted that the bucket is not on the list of buckets: [Upkeep.Reindex] puts
	// both right. Set for tasks that are open.
	InBucket, Unlisted bool
	// Unwatched says that no lease watches over the round, though it was claimed
	// under one: [Upkeep.Reindex] puts that right. Abandoned says that the worker
	// has registered anew since, so that nobody runs the round any more: the task
	// is lost. Set for running tasks.
	Unwatched, Abandoned bool
	// Uncounted says that a set by which limits are enforced lacks the round, though
	// a worker of ours runs it: [Upkeep.Reindex] puts that right. Set for running tasks.
	Uncounted bool
	// Untold says that a stop was asked for and the worker of the round will not
	// hear of it: to ask once more puts that right. Set for running tasks.
	Untold bool
}

// Fingerprint is the same as long as neither the task nor its sets change.
func (i *Inspection) Fingerprint() string {
	f := &i.Task.Found
	return f.State + "/" + f.Round + "/" + f.Rev + "/" + i.ListedText(" ")
}

// ListedText is the names of the sets that list it, with sep between them.
func (i *Inspection) ListedText(sep string) string {
	names := make([]string, len(i.Listed))
	for n, st := range i.Listed {
		names[n] = string(st)
	}
	return strings.Join(names, sep)
}

// Absent says that neither a hash nor a set knows the id.
func (i *Inspection) Absent() bool {
	return i.Task.Found.State == "" && i.Task.Found.Round == "" && len(i.Listed) == 0
}

// Inspect reads tasks and indices, at most a few hundred ids a call.
func (s *Upkeep) Inspect(ctx context.Context, ids []int64) ([]Inspection, statemachine.Time, error) {
	args := tasks.StateArgs()
	for _, id := range ids {
		args = append(args, id)
	}
	r, err := s.RunList(ctx, "inspect", conn.Subject{More: s.Keys.States()}, args...)
	if err != nil {
		return nil, 0, err
	}
	found := make([]Inspection, len(r.List(1)))
	for i := range found {
		t := r.List(1).List(i)
		id := t.Number(0)
		found[i] = Inspection{Task: tasks.DecodeSeen(id, t[4:], conn.ClockOf(r, 2)), Due: t.Time(2)}
		if field := t.Text(3); found[i].Task.Err == nil && field != "" {
			found[i].Task.Err = &conn.DamageError{ID: id, Reason: "field " + field + " is missing"}
		}
		for name := range strings.FieldsSeq(t.Text(1)) {
			found[i].Listed = append(found[i].Listed, statemachine.State(name))
		}
	}
	return found, r.Time(0), s.lookAround(ctx, found)
}

// looks are the answers about one task.
type looks struct {
	bucket, lease      *redis.FloatCmd
	listed, held, told *redis.BoolCmd
	session            *redis.StringCmd
	counted            []*redis.BoolCmd
}

// lookAround reads what else should know of the tasks.
func (s *Upkeep) lookAround(ctx context.Context, found []Inspection) error {
	all := make([]looks, len(found))
	err := s.Pipelined(ctx, "inspect", func(p redis.Pipeliner) {
		for i := range found {
			t := &found[i].Task
			if t.Err == nil && t.State == statemachine.Running && t.Current.Claim != "" {
				all[i].counted = s.lookCounted(ctx, p, t)
			}
			switch {
			case t.Err != nil:
			case t.State == statemachine.Open:
				all[i].bucket = p.ZScore(ctx, s.Keys.Ready(t.Bucket.Name()), tasks.Member(t.ID))
				all[i].listed = p.SIsMember(ctx, s.Keys.Buckets(), t.Bucket.Name())
			case t.Leased():
				all[i].lease = p.ZScore(ctx, s.Keys.Lease(), t.Worker)
				all[i].held = p.SIsMember(ctx, s.Keys.Held(t.Worker), t.ID)
				all[i].told = p.SIsMember(ctx, s.Keys.Stop(t.Worker), t.ID)
				all[i].session = p.HGet(ctx, s.Keys.WorkerDoc(t.Worker), "incarnation")
			}
		}
	})
	if err != nil {
		return err
	}
	for i := range all {
		all[i].tell(&found[i])
	}
	return nil
}

// tell says what was found around a task.
func (l *looks) tell(i *Inspection) {
	i.Uncounted = slices.ContainsFunc(l.counted, func(c *redis.BoolCmd) bool { return c.Err() == nil && !c.Val() })
	i.InBucket = l.bucket != nil && l.bucket.Err() == nil
	i.Unlisted = l.listed != nil && l.listed.Err() == nil && !l.listed.Val()
	if l.held != nil {
		session, _ := l.session.Int64()
		i.Abandoned = session > i.Task.Incarnation
		i.Untold = i.Task.StopAsked && !l.told.Val()
		i.Unwatched = !i.Abandoned && (!l.held.Val() || l.lease.Err() != nil)
	}
}

// lookCounted asks all that must count a round.
func (s *Upkeep) lookCounted(ctx context.Context, p redis.Pipeliner, t *tasks.TaskHeader) []*redis.BoolCmd {
	k, queue := s.Keys, t.Bucket.QueueName()
	counted := []*redis.BoolCmd{p.SIsMember(ctx, k.BusyQueue(queue), t.ID)}
	if t.Node != "" {
		counted = append(counted, p.SIsMember(ctx, k.BusyNode(t.Node), t.ID), p.SIsMember(ctx, k.BusyBoth(queue, t.Node), t.ID))
	}
	if t.Node != "" && slices.Contains(t.Bucket.Fields(), tasks.ResourcesField) {
		counted = append(counted, p.HExists(ctx, k.Used(t.Node), strconv.FormatInt(t.ID, 10)))
	}
	return counted
}

// Watermark returns up to which id foreign tasks have been looked for, and the
// newest id there is.
func (s *Upkeep) Watermark(ctx context.Context) (adopted, last int64, err error) {
	var a, l *redis.StringCmd
	_, err = s.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		a, l = p.HGet(ctx, s.Keys.Meta(), "adopted"), p.Get(ctx, s.Keys.TaskID())
		return nil
	})
	if err != nil && !conn.IsNil(err) {
		return 0, 0, s.Failed("watermark", err)
	}
	adopted, _ = a.Int64()
	last, _ = l.Int64()
	s.Memory.Saw(last)
	return adopted, last, nil
}

// MoveWatermark says that foreign tasks have been looked for up to the new id.
// It reports false if somebody else has moved it elsewhere.
func (s *Upkeep) MoveWatermark(ctx context.Context, from, to int64) (bool, error) {
	v, err := s.Run(ctx, "watermark", conn.Subject{}, from, to)
	return v == int64(1), err
}

// Reindex puts a sound task where it belongs in its bucket, in the deadline
// index and among the tasks its worker holds, or out of them, and wakes a worker that waits for it. Nothing happens if the
// task has changed since it was seen. It reports whether anything was wrong; repeated
// after a lost reply, it finds nothing wrong any more.
func (s *Upkeep) Reindex(ctx context.Context, t *tasks.TaskHeader, grace statemachine.Duration) (bool, error) {
	score := ""
	if t.State == statemachine.Open {
		score = t.Due().Text()
	}
	worker := ""
	if t.Leased() {
		worker = t.Worker
	}
	bucket := t.Bucket.Name()
	v, err := s.Run(ctx, "index", conn.Subject{Task: t.ID, Bucket: bucket, Worker: worker},
		t.ID, string(t.State), t.Round, t.Rev, tasks.DeadlineText(t.Deadline(grace)), score, bucket, worker, t.Incarnation,
		t.Runs(), t.Bucket.QueueName(), t.Node)
	return v == int64(1), err
}

// Postpone lets the deadline index offer ids again only after d. It is for
// tasks nothing can be decided about.
func (s *Upkeep) Postpone(ctx context.Context, now statemachine.Time, d statemachine.Duration, ids ...int64) error {
	members := make([]redis.Z, len(ids))
	for i, id := range ids {
		members[i] = redis.Z{Score: float64(now.Add(d)) / 1e6, Member: strconv.FormatInt(id, 10)}
	}
	if len(members) == 0 {
		return nil
	}
	if err := s.Redis.ZAddXX(ctx, s.Keys.Due(), members...).Err(); err != nil {
		return s.Failed("postpone", err)
	}
	return nil
}

// Relist makes a task listed in exactly one state set: the one of its hash, or
// archived where a foreign manager has archived it. Nothing happens if the
// task or its sets have changed since the inspection.
func (s *Upkeep) Relist(ctx context.Context, i *Inspection, to statemachine.State, now statemachine.Time) (bool, error) {
	var fields []any
	if to == statemachine.Archived && i.Task.State != statemachine.Archived {
		fields = []any{"state", string(to), "outcome", string(i.Task.State)}
	}
	return s.repair(ctx, i, string(to), now.Text(), "", fields, nil)
}

// DeadLetter makes a damaged task a dead letter: it takes it out of all sets and buckets and keeps a description,
// so that daemons do not meet it again. Nothing happens if it has changed.
func (s *Upkeep) DeadLetter(ctx context.Context, i *Inspection, now statemachine.Time) (bool, error) {
	reason := "its state sets and its hash disagree"
	if damage, ok := errors.AsType[*conn.DamageError](i.Task.Err); ok {
		reason = damage.Reason
	}
	text, err := json.Marshal(Aside{ID: i.Task.ID, Reason: reason, State: i.Task.Found.State, Listed: i.ListedText(" "), At: now.Text()})
	if err != nil {
		return false, fmt.Errorf("dead letter: %w", err)
	}
	buckets, err := s.tasks.Buckets(ctx)
	if err != nil {
		return false, err
	}
	return s.repair(ctx, i, "", "", string(text), nil, buckets)
}

func (s *Upkeep) repair(
	ctx context.Context, i *Inspection, to, score, aside string, fields []any, buckets []task.Bucket,
) (bool, error) {
	of := conn.Subject{Task: i.Task.ID, More: s.Keys.States()}
	for n := range buckets {
		of.More = append(of.More, s.Keys.Ready(buckets[n].Name()))
	}
	f := &i.Task.Found
	args := append([]any{i.Task.ID, f.State, f.Round, f.Rev, i.ListedText(" "), to, score, aside,
		conn.Flag(to != string(statemachine.Running))}, tasks.StateArgs()...)
	args = append(append(args, len(fields)), fields...)
	v, err := s.Run(ctx, "repair", of, args...)
	return v == int64(1), err
}

// Aside describes a dead letter.
type Aside struct {
	ID     int64  `json:"id"`
	Reason string `json:"reason"`
	// State is the hash's, Listed the names of the sets that listed the id.
	State  string `json:"state"`
	Listed string `json:"listed"`
	At     string `json:"at"`
}

// Asides lists the dead letters.
func (s *Upkeep) Asides(ctx context.Context) ([]Aside, error) {
	all, err := s.Redis.HGetAll(ctx, s.Keys.DeadLetters()).Result()
	if err != nil {
		return nil, s.Failed("dead letters", err)
	}
	list := make([]Aside, 0, len(all))
	for id, text := range all {
		var a Aside
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			a.Reason = text
		}
		a.ID, _ = strconv.ParseInt(id, 10, 64)
		list = append(list, a)
	}
	return list, nil
}
