// Package audit looks at a namespace and says what cannot be: every task must be
// in exactly one state, with counters, limits, stamps and indices that agree, every
// id that was given out must be accounted for, and the recorded events must be
// steps that the state machine allows.
//
// [Verify] reads only, through the store, and decides nothing: what it finds is for
// people, and for tests that want proof. A task that moves while it is looked at
// is looked at again before anything is said about it. [Repair] puts right what is
// safe to put right, which never is the record of a task.
package audit

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// auditor is one audit under way.
type auditor struct {
	store   *store.Store
	report  Report
	adopted int64
	grace   statemachine.Duration
	buckets map[string]bool
	asides  map[int64]store.Aside
	// gaps are the ids that epochs left out, there those of them that exist all
	// the same.
	gaps  []gap
	there map[int64]bool
	// purged are the ids of archived tasks that have left Redis, as ranges in order.
	purged  []store.Span
	history history
	// members are the tasks that say to which plan they belong, by plan.
	members map[int64][]int64
	pause   time.Duration
	// fix, if set, repairs what is found.
	fix *fixer
}

// chunk is how many tasks are looked at in one call.
const chunk = 200

// A task about which there is something to say is looked at again, looks times
// in all, lookAgain apart: a client that moves it in several steps is done then.
const (
	looks     = 4
	lookAgain = 150 * time.Millisecond
)

// maxLooks ends the audit of a task that never stops moving.
const maxLooks = 20

// Verify audits all tasks of a namespace. It may be used while everything is at
// work. The error is that of a call to Redis; what is wrong with tasks is in
// the report.
func Verify(ctx context.Context, s *store.Store) (Report, error) {
	a := newAuditor(s)
	err := a.run(ctx)
	return a.report, err
}

func newAuditor(s *store.Store) *auditor {
	return &auditor{
		store: s, pause: lookAgain, asides: map[int64]store.Aside{}, there: map[int64]bool{},
		members: map[int64][]int64{},
		report: Report{
			Namespace: s.Namespace(), States: map[statemachine.State]int64{}, Violations: []Violation{}, Notes: []Violation{},
		},
	}
}

// run makes all steps of the audit. The newest id is read before the events, so
// that whatever our own clients have opened up to it has left its event there.
func (a *auditor) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		a.begin, a.readHistory, a.walk, a.unknown, a.mendSets, a.strays, a.counts, a.compareHistory, a.account, a.plans,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin reads what tasks are compared with.
func (a *auditor) begin(ctx context.Context) (err error) {
	if a.adopted, a.report.TaskID, err = a.store.Watermark(ctx); err != nil {
		return err
	}
	a.report.Account.Opened = a.report.TaskID
	if a.grace, _, err = a.store.Grace(ctx); err != nil {
		return err
	}
	if err := a.readBuckets(ctx); err != nil {
		return err
	}
	if err := a.readGaps(ctx); err != nil {
		return err
	}
	return a.readPurged(ctx)
}

// walk audits all ids but those that epochs left out.
func (a *auditor) walk(ctx context.Context) error {
	return a.between(ctx, 1, a.report.TaskID)
}

func (a *auditor) between(ctx context.Context, first, last int64) error {
	ids := make([]int64, 0, chunk)
	for id := first; id <= last; id++ {
		if id = a.skip(id, last); id > last {
			break
		}
		if ids = append(ids, id); len(ids) == chunk {
			if err := a.tasks(ctx, ids); err != nil {
				return err
			}
			ids = ids[:0]
		}
	}
	return a.tasks(ctx, ids)
}

// tasks audits some tasks.
func (a *auditor) tasks(ctx context.Context, ids []int64) error {
	ids = slices.Clone(ids)
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
			if err := a.note(ctx, sight, problems); err != nil {
				return err
			}
		}
		if len(ids) > 0 && !timing.Pause(ctx, a.pause) {
			return ctx.Err()
		}
	}
	return nil
}

// note counts the task and keeps what there is to say about it.
func (a *auditor) note(ctx context.Context, s *sight, problems []problem) error {
	a.report.Checked++
	a.history.hear(s)
	if plan, err := strconv.ParseInt(s.stamps["plan"], 10, 64); err == nil {
		a.members[plan] = append(a.members[plan], s.ID)
	}
	switch {
	case s.purged:
		a.report.Account.Purged++
	case s.setAside():
		a.report.Account.SetAside++
	case s.unwritten():
		a.report.Account.Unwritten++
	case s.Err != nil:
		a.report.Account.Missing++
	default:
		a.report.States[s.state()]++
		a.report.Account.InStates++
	}
	for _, p := range problems {
		if p.note {
			a.remark(p.Violation)
		} else {
			a.say(p.Violation)
		}
	}
	if a.fix == nil || !slices.ContainsFunc(problems, func(p problem) bool { return !p.note }) {
		return nil
	}
	return a.fix.task(ctx, s, problems)
}
