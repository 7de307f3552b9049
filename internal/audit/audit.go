// Package audit looks at a namespace and says what cannot be: every task must be
// in exactly one state, with counters, limits, stamps and indices that agree.
//
// It reads only, through the store, and decides nothing: what it finds is for
// people, and for tests that want proof. A task that moves while it is looked at
// is looked at again before anything is said about it.
package audit

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// Violation is something about one task that cannot be.
type Violation struct {
	ID int64 `json:"id"`
	// Kind is one of the constants of this package.
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// Kind says which promise is broken.
type Kind string

// The kinds of violations.
const (
	// Lost: an id was given out, and there is neither a record nor a set with it.
	Lost Kind = "lost"
	// SetAside: a server took the damaged task out of all sets.
	SetAside Kind = "set_aside"
	// Damaged: the hash is missing or does not hold what it must.
	Damaged Kind = "damaged"
	// Sets: the task is not in exactly one state set, equal to its hash.
	Sets Kind = "sets"
	// Counters: they do not add up to the round.
	Counters Kind = "counters"
	// Limits: a counter is beyond its maximum.
	Limits Kind = "limits"
	// Stamps: a moment that must have been recorded is not there.
	Stamps Kind = "stamps"
	// Index: a server or worker will not find the task when it is due, or limits
	// count a round that is none or miss one that is.
	Index Kind = "index"
	// Unknown: a set lists an id that was never given out.
	Unknown Kind = "unknown"
)

// Report is what [Verify] found.
type Report struct {
	Namespace string `json:"namespace"`
	// TaskID is the newest id, Checked the number of tasks looked at.
	TaskID  int64 `json:"task_id"`
	Checked int64 `json:"checked"`
	// States counts the tasks by state as each was when it was looked at.
	States map[statemachine.State]int64 `json:"states"`
	// Violations are sorted by id within each step of the audit.
	Violations []Violation `json:"violations"`
}

// OK reports whether nothing was found.
func (r *Report) OK() bool { return len(r.Violations) == 0 }

// auditor is one audit under way.
type auditor struct {
	store   *store.Store
	report  Report
	adopted int64
	asides  map[int64]store.Aside
	pause   time.Duration
}

// chunk is how many tasks are looked at in one call.
const chunk = 200

// A task about which there is something to say is looked at again, looks times
// in all, lookAgain apart: a client that moves it in several steps is done then.
const (
	looks     = 4
	lookAgain = 150 * time.Millisecond
)

// Verify audits all tasks of a namespace. It may be used while everything is at
// work. The error is that of a call to Redis; what is wrong with tasks is in
// the report.
func Verify(ctx context.Context, s *store.Store) (Report, error) {
	a := auditor{store: s, pause: lookAgain, asides: map[int64]store.Aside{}}
	a.report = Report{
		Namespace: s.Namespace(), States: map[statemachine.State]int64{}, Violations: []Violation{},
	}
	var err error
	if a.adopted, a.report.TaskID, err = s.Watermark(ctx); err != nil {
		return a.report, err
	}
	for first := int64(1); first <= a.report.TaskID; first += chunk {
		ids := make([]int64, 0, chunk)
		for id := first; id < first+chunk && id <= a.report.TaskID; id++ {
			ids = append(ids, id)
		}
		if err := a.tasks(ctx, ids); err != nil {
			return a.report, err
		}
	}
	if err := a.unknown(ctx); err != nil {
		return a.report, err
	}
	return a.report, a.counts(ctx)
}

// tasks audits some tasks.
func (a *auditor) tasks(ctx context.Context, ids []int64) error {
	before := map[int64]string{}
	for look := 1; len(ids) > 0; look++ {
		found, err := a.look(ctx, ids)
		if err != nil {
			return err
		}
		ids = ids[:0]
		for i := range found {
			sight := &found[i]
			problems := sight.problems()
			settled := len(problems) == 0 || look >= looks && before[sight.ID] == sight.Fingerprint()
			if !settled && look < maxLooks {
				before[sight.ID] = sight.Fingerprint()
				ids = append(ids, sight.ID)
				continue
			}
			a.note(sight, problems)
		}
		if len(ids) > 0 && !timing.Pause(ctx, a.pause) {
			return ctx.Err()
		}
	}
	return nil
}

// maxLooks ends the audit of a task that never stops moving.
const maxLooks = 20

func (a *auditor) note(s *sight, problems []Violation) {
	a.report.Checked++
	if s.Err == nil {
		a.report.States[s.state()]++
	}
	a.report.Violations = append(a.report.Violations, problems...)
}
