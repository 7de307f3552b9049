package store

import (
	"context"

	"github.com/tdf-go/tdf/statemachine"
)

// Seen is a task as decisions need it. Where it was read together with a time all
// its moments are by that clock, that of the namespace, also start_after and end_before.
type Seen struct {
	statemachine.Task
	Bucket Bucket
	// Worker is who has claimed the current round, empty before that.
	// Incarnation is that of his session, 0 if the claim is without a lease.
	Worker      string
	Incarnation int64
	// Node is where the current round runs or ran, Program what.
	Node, Program string
	// FailedNodes are nodes on which a round of the task has failed, at most 16;
	// none where quarantine is off.
	FailedNodes []string
	// Err matches [ErrDamaged] if the task's hash does not hold what it must;
	// then only ID can be relied on.
	Err error
	// fingerprint is where the task was seen, as texts.
	state, round, rev string
}

// Leased reports whether a worker's session runs the task.
func (t *Seen) Leased() bool { return t.State == statemachine.Running && t.Incarnation > 0 }

// Batch is a part of a set, read at one moment.
type Batch struct {
	Tasks []Seen
	// Next is the score of the first entry that is not due yet, or Never.
	Next statemachine.Time
	Now  statemachine.Time
	clock
}

// Due reads the tasks whose deadline has come, the longest overdue first.
func (s *Store) Due(ctx context.Context, limit int) (Batch, error) {
	return s.load(ctx, s.keys.due(), "due", 0, limit)
}

// Listed reads the tasks of a state from the given rank on, the oldest first.
func (s *Store) Listed(ctx context.Context, state statemachine.State, offset, limit int) (Batch, error) {
	return s.load(ctx, s.keys.state(state), "rank", offset, limit)
}

func (s *Store) load(ctx context.Context, key, how string, offset, limit int) (Batch, error) {
	r, err := s.runList(ctx, "load", []string{s.keys.meta(), key}, s.keys.taskPrefix(), how, offset, limit)
	if err != nil {
		return Batch{}, err
	}
	at := clockOf(r, 3)
	return Batch{clock: at, Now: at.now, Next: r.time(1), Tasks: decodeSeenList(r.list(2), at)}, nil
}

func decodeSeenList(list reply, at clock) []Seen {
	if len(list) == 0 {
		return nil
	}
	seen := make([]Seen, len(list))
	for i := range list {
		t := list.list(i)
		fields := t[1:]
		if all := t.list(1); len(all) > 0 {
			fields = lightOf(all.fields())
		}
		seen[i] = at.seen(decodeSeen(t.number(0), fields))
	}
	return seen
}
