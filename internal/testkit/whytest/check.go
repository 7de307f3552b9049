package whytest

import (
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/statemachine"
)

// Claimer can claim.
type Claimer interface {
	// Claimed reports whether a claim of that worker, given by its place in the
	// plan, for all its free slots and with the first turn at the task's queue,
	// would get the task.
	Claimed(p *Plan, worker int, id int64) bool
}

// Tally counts what was checked.
type Tally struct{ Claimable, Blocked int }

// Check holds every waiting task of a plan against what is said of it.
func Check(p *Plan, c Claimer) (Tally, error) {
	var n Tally
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.State == statemachine.Running {
			continue
		}
		claimable := anyone(p, c, t.ID)
		if claimable {
			n.Claimable++
		} else {
			n.Blocked++
		}
		if err := checkTask(p, c, t, claimable); err != nil {
			return n, fmt.Errorf("task %d: %w", t.ID, err)
		}
	}
	return n, nil
}

func anyone(p *Plan, c Claimer, id int64) bool {
	for w := range p.Workers {
		if c.Claimed(p, w, id) {
			return true
		}
	}
	return false
}

func checkTask(p *Plan, c Claimer, t *Task, claimable bool) error {
	e := why.Explain(p.Situation(t.ID))
	if claimable == e.Blocked() {
		return fmt.Errorf("claimable is %v, and the reasons are:\n%s", claimable, told(e))
	}
	for _, r := range e {
		if r.Text == "" || r.Blocks == r.Change.Zero() {
			return fmt.Errorf("a reason that blocks comes with a change, and only that; found %+v", r)
		}
	}
	if claimable {
		return nil
	}
	next, err := p.Changed(e)
	if err != nil {
		return err
	}
	if !anyone(next, c, t.ID) {
		return fmt.Errorf("not claimed once these changes are made:\n%s", told(e))
	}
	return nil
}

// told are reasons for people who mend the test.
func told(e why.Explanation) string {
	var text strings.Builder
	for _, r := range e {
		c := r.Change
		fmt.Fprintf(&text, "%s (blocks: %v): %s -> %s %s %s = %q\n", r.Kind, r.Blocks, r.Text, c.Object, c.Name, c.Attribute, c.Value)
	}
	return text.String()
}
