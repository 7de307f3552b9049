package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
)

// MoveWatermark says that foreign tasks have been looked for up to the new id.
// It reports false if somebody else has moved it elsewhere.
func (s *Store) MoveWatermark(ctx context.Context, from, to int64) (bool, error) {
	v, err := s.run(ctx, "watermark", []string{s.keys.meta()}, from, to)
	return v == int64(1), err
}

// Reindex puts a sound task where it belongs in its bucket, in the deadline
// index and among the tasks its worker holds, or out of them, and wakes whoever waits for it. Nothing happens if the
// task has changed since it was seen. It reports whether anything was wrong; repeated
// after a lost reply, it finds nothing wrong any more.
func (s *Store) Reindex(ctx context.Context, t *Seen, grace statemachine.Duration) (bool, error) {
	score := ""
	if t.State == statemachine.Open {
		score = t.Due().Text()
	}
	worker := ""
	if t.Leased() {
		worker = t.Worker
	}
	k, bucket := s.keys, t.Bucket.Name()
	args := append([]any{
		t.ID, string(t.State), t.Round, t.Rev, deadlineText(t.Deadline(grace)), score, bucket, worker, t.Incarnation,
		t.runs(), t.Bucket.QueueName(), t.Node,
	}, k.counting()...)
	v, err := s.run(ctx, "index",
		[]string{k.meta(), k.task(t.ID), k.due(), k.buckets(), k.ready(bucket), k.wake(bucket),
			k.lease(), k.held(worker), k.workerDoc(worker)}, args...)
	return v == int64(1), err
}

// runs says who runs the task: "0" nobody, "1" a worker that has claimed it by
// the claim script, empty any other.
func (t *Seen) runs() string {
	switch {
	case t.State != statemachine.Running:
		return "0"
	case t.Current.Claim != "":
		return "1"
	default:
		return ""
	}
}

// Postpone lets the deadline index offer ids again only after d. It is for
// tasks nothing can be decided about.
func (s *Store) Postpone(ctx context.Context, now statemachine.Time, d statemachine.Duration, ids ...int64) error {
	members := make([]redis.Z, len(ids))
	for i, id := range ids {
		members[i] = redis.Z{Score: float64(now.Add(d)) / 1e6, Member: strconv.FormatInt(id, 10)}
	}
	if len(members) == 0 {
		return nil
	}
	if err := s.rdb.ZAddXX(ctx, s.keys.due(), members...).Err(); err != nil {
		return s.failed("postpone", err)
	}
	return nil
}

// Relist makes a task listed in exactly one state set: the one of its hash, or
// archived where a foreign manager has archived it. Nothing happens if the
// task or its sets have changed since the inspection.
func (s *Store) Relist(ctx context.Context, i *Inspection, to statemachine.State, now statemachine.Time) (bool, error) {
	var fields []any
	if to == statemachine.Archived && i.State != statemachine.Archived {
		fields = []any{"state", string(to), "outcome", string(i.State)}
	}
	return s.repair(ctx, i, string(to), now.Text(), "", fields, nil)
}

// SetAside takes a damaged task out of all sets and buckets and keeps a description of it,
// so that daemons do not meet it again. Nothing happens if it has changed.
func (s *Store) SetAside(ctx context.Context, i *Inspection, now statemachine.Time) (bool, error) {
	reason := "its state sets and its hash disagree"
	if damage, ok := errors.AsType[*DamageError](i.Err); ok {
		reason = damage.Reason
	}
	text, err := json.Marshal(Aside{ID: i.ID, Reason: reason, State: i.state, Listed: i.listedText(), At: now.Text()})
	if err != nil {
		return false, fmt.Errorf("set aside: %w", err)
	}
	buckets, err := s.Buckets(ctx)
	if err != nil {
		return false, err
	}
	return s.repair(ctx, i, "", "", string(text), nil, buckets)
}

func (s *Store) repair(
	ctx context.Context, i *Inspection, to, score, aside string, fields []any, buckets []Bucket,
) (bool, error) {
	k := s.keys
	keys := append([]string{k.meta(), k.task(i.ID), k.due(), k.setAside()}, k.states()...)
	for n := range buckets {
		keys = append(keys, k.ready(buckets[n].Name()))
	}
	args := append([]any{i.ID, i.state, i.round, i.rev, i.listedText(), to, score, aside,
		flag(to != string(statemachine.Running))}, stateArgs()...)
	args = append(args, k.counting()...)
	args = append(append(args, len(fields)), fields...)
	v, err := s.run(ctx, "repair", keys, args...)
	return v == int64(1), err
}

// Aside describes a task that was set aside.
type Aside struct {
	ID     int64  `json:"id"`
	Reason string `json:"reason"`
	// State is the hash's, Listed the names of the sets that listed the id.
	State  string `json:"state"`
	Listed string `json:"listed"`
	At     string `json:"at"`
}

// Asides lists the tasks that were set aside.
func (s *Store) Asides(ctx context.Context) ([]Aside, error) {
	all, err := s.rdb.HGetAll(ctx, s.keys.setAside()).Result()
	if err != nil {
		return nil, s.failed("set aside", err)
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
