package store

import (
	"context"

	"github.com/tdf-go/tdf/statemachine"
)

// Seen is a task as decisions need it.
type Seen struct {
	statemachine.Task
	Bucket Bucket
	// Worker is who has claimed the current round, empty before that.
	// Incarnation is that of his session, 0 if the claim is without a lease.
	Worker      string
	Incarnation int64
	// Err matches [ErrDamaged] if the task's hash does not hold what it must;
	// then only ID can be relied on.
	Err error
	// fingerprint is where the task was seen, as texts.
	state, round, rev string
}

// leased reports whether a worker's session runs the task.
func (t *Seen) leased() bool { return t.State == statemachine.Running && t.Incarnation > 0 }

// Batch is a part of a set, read at one moment.
type Batch struct {
	Tasks []Seen
	// Next is the score of the first entry that is not due yet, or Never.
	Next statemachine.Time
	Now  statemachine.Time
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
	return Batch{Now: r.time(0), Next: r.time(1), Tasks: decodeSeenList(r.list(2))}, nil
}

func decodeSeenList(list reply) []Seen {
	if len(list) == 0 {
		return nil
	}
	seen := make([]Seen, len(list))
	for i := range list {
		t := list.list(i)
		seen[i] = decodeSeen(t.number(0), t[1:])
	}
	return seen
}

// lightFields is the order in which lib/light.lua returns a task.
var lightFields = []string{
	"state", "round", "rev", "fails", "timeouts", "losses", "releases", "start_after", "end_before", "timeout",
	"max_fails", "max_timeouts", "max_losses", "queue", "env", "labels", "priority", "outcome",
	"claim", "running", "executed", "failed",
	"worker", "incarnation",
}

var lightIndex = func() map[string]int {
	m := make(map[string]int, len(lightFields))
	for i, name := range lightFields {
		m[name] = i
	}
	return m
}()

func decodeSeen(id int64, r reply) Seen {
	f := fieldReader{get: func(name string) string { return r.text(lightIndex[name]) }}
	t := Seen{state: f.get("state"), round: f.get("round"), rev: f.get("rev")}
	t.ID = id
	switch {
	case len(r) == 0 || t.state == "" && t.round == "":
		t.Err = &DamageError{ID: id, Reason: "hash is missing"}
		return t
	case !statemachine.State(t.state).Valid():
		t.Err = &DamageError{ID: id, Reason: "field state: " + quote(t.state) + " is not a state"}
		return t
	case t.round == "":
		t.Err = &DamageError{ID: id, Reason: "field round is missing"}
		return t
	}
	t.Task = f.task(id)
	t.Current = statemachine.Round{
		Claim: f.get("claim"), Running: f.stamp("running"), Executed: f.stamp("executed"), Failed: f.get("failed") != "",
	}
	t.Bucket = f.bucket()
	t.Worker, t.Incarnation = f.get("worker"), int64(f.count("incarnation"))
	if f.err != nil {
		t.Err = &DamageError{ID: id, Reason: f.err.Error()}
	}
	return t
}
