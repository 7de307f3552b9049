package manager

import (
	"context"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// Explanation are reasons, the most important first. docs/WHY.md lists their
// kinds.
type Explanation []Reason

// Reason is one thing to say about where a task is, or about a queue.
type Reason struct {
	// Kind is a word that stays the same over versions: "paused", "label".
	Kind string `json:"kind"`
	// Text is for people: a clause without a full stop.
	Text string `json:"text"`
	// Blocks says that the task is not claimed as long as this holds.
	Blocks bool `json:"blocks"`
	// Change would take the reason away; nil if there is nothing to change.
	Change *Remedy `json:"change,omitempty"`
}

// Remedy is a change that takes a reason away: the attribute of the object is to
// have the value. docs/WHY.md lists the attributes.
type Remedy struct {
	// Object is task, plan, queue, worker, node, server, or time; Name says which task,
	// queue, worker or node, and is empty for a worker that is to be started.
	Object    string `json:"object"`
	Name      string `json:"name,omitempty"`
	Attribute string `json:"attribute"`
	Value     string `json:"value"`
}

// Blocked reports whether any of the reasons blocks.
func (e Explanation) Blocked() bool {
	for i := range e {
		if e[i].Blocks {
			return true
		}
	}
	return false
}

// Why says why a task is where it is: why it has not been claimed, and what
// would make it claimable; how its round goes; or by which rule it ended. The
// readings it is made from are not made at one moment. The error matches
// [ErrNotFound] if there is no such task, [ErrDamaged] if its record is spoilt.
func (m *Manager) Why(ctx context.Context, id int64) (Explanation, error) {
	t, err := m.store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	if t.Err != nil {
		return nil, t.Err
	}
	s, err := m.surroundings(ctx)
	if err != nil {
		return nil, err
	}
	s.Task = situated(t)
	if err := m.situatePlan(ctx, &s.Task, t); err != nil {
		return nil, err
	}
	if err := m.lines(ctx, &s, t); err != nil {
		return nil, err
	}
	return explanation(why.Explain(s)), nil
}

// WhyQueue says what keeps the tasks of a queue from being claimed, how many
// wait, and which live workers may take from it. The error matches [ErrNoQueue]
// if there is no queue of that name.
func (m *Manager) WhyQueue(ctx context.Context, name string) (Explanation, error) {
	if _, err := m.store.Queue(ctx, name); err != nil {
		return nil, err
	}
	s, err := m.surroundings(ctx)
	if err != nil {
		return nil, err
	}
	if s.Lines, err = m.look(ctx, &s, store.Bucket{}, store.Waiting{}); err != nil {
		return nil, err
	}
	return explanation(why.ExplainQueue(s, name)), nil
}

// lines reads what stands in line with a task that waits.
func (m *Manager) lines(ctx context.Context, s *why.Situation, t *store.Task) error {
	if t.State != statemachine.Open && t.State != statemachine.Blocked {
		return nil
	}
	if t.State == statemachine.Open {
		found, _, err := m.store.Inspect(ctx, []int64{t.ID})
		if err != nil {
			return err
		}
		s.Task.Unlisted = len(found) == 1 && found[0].State == statemachine.Open && !found[0].InBucket
	}
	var err error
	s.Lines, err = m.look(ctx, s, t.Bucket, store.Waiting(s.InLine()))
	return err
}

// look reads the lines at the moment of the situation.
func (m *Manager) look(ctx context.Context, s *why.Situation, b store.Bucket, w store.Waiting) ([]why.Line, error) {
	most := 1
	for i := range s.Workers {
		most = max(most, s.Workers[i].Slots)
	}
	found, err := m.store.Lines(ctx, b, w, s.At(), most)
	lines := make([]why.Line, len(found))
	for i := range found {
		l := &found[i]
		lines[i] = why.Line{Bucket: l.Bucket, Due: l.Due, Before: l.Before}
		for _, first := range l.First {
			lines[i].First = append(lines[i].First, why.Waiting(first))
		}
	}
	return lines, err
}

func explanation(e why.Explanation) Explanation {
	found := make(Explanation, len(e))
	for i, r := range e {
		found[i] = Reason{Kind: string(r.Kind), Text: r.Text, Blocks: r.Blocks}
		if !r.Change.Zero() {
			found[i].Change = &Remedy{Object: string(r.Change.Object), Name: r.Change.Name, Attribute: r.Change.Attribute, Value: r.Change.Value}
		}
	}
	return found
}
