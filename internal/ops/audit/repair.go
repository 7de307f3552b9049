package audit

import (
	"context"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// RepairOptions say how far [Repair] goes.
type RepairOptions struct {
	// DryRun only says what would be done.
	DryRun bool
	// SetAside takes damaged tasks out of all sets, as the servers do: nothing else
	// can be done about them, and nothing is deleted.
	SetAside bool
}

// Repairs are what [Repair] did about violations and what it left.
type Repairs struct {
	// Done are violations that were repaired, or would be in a dry run; the text
	// says how.
	Done []Violation `json:"done"`
	// Left are the others; the text says why.
	Left []Violation `json:"left"`
}

// patience is how long a disagreement between a task and its sets must stand
// still before it is repaired, as with the servers: clients in another language may take
// 5 s between the steps of a move.
const patience = 5 * time.Second

// Repair audits all tasks and puts indices and state sets right where the record of
// the task says what is right. It never changes a record and deletes no task.
// Each repair is made only if nothing has changed since the look. The error is that of a call to
// Redis; what was done by then is done.
func Repair(ctx context.Context, s *store.Store, opt RepairOptions) (Repairs, error) {
	a := newAuditor(s)
	return a.repair(ctx, opt, patience)
}

func (a *auditor) repair(ctx context.Context, opt RepairOptions, wait time.Duration) (Repairs, error) {
	a.fix = &fixer{a: a, opt: opt, wait: wait, repairs: Repairs{Done: []Violation{}, Left: []Violation{}}}
	err := a.run(ctx)
	if err == nil {
		err = a.fix.finish(ctx)
	}
	return a.fix.repairs, err
}

// fixer repairs what an auditor finds.
type fixer struct {
	a       *auditor
	opt     RepairOptions
	wait    time.Duration
	repairs Repairs
	// strays are entries to be taken out of indices; pending are tasks whose sets
	// disagree, as they were seen.
	strays  []found
	pending []pending
	// uncounted are violations that counting anew repairs.
	uncounted []Violation
}

type found struct {
	stray
	Violation
}

type pending struct {
	id          int64
	fingerprint string
	why         []Violation
}

// task repairs one task, or remembers to do it when it has stood still.
func (f *fixer) task(ctx context.Context, s *sight, problems []problem) error {
	var indices, sets []Violation
	for _, p := range problems {
		switch {
		case p.note:
		case p.Kind == Damaged && !f.opt.SetAside, p.Kind == Index && s.Abandoned, p.Kind != Index && p.Kind != Sets && p.Kind != Damaged:
			f.leave(p.Violation)
		case p.Kind == Index:
			indices = append(indices, p.Violation)
		default:
			sets = append(sets, p.Violation)
		}
	}
	if len(sets) > 0 {
		f.pending = append(f.pending, pending{s.ID, s.Fingerprint(), append(sets, indices...)})
		return nil
	}
	if len(indices) == 0 {
		return nil
	}
	return f.reindex(ctx, &s.Inspection, indices)
}

// leave says why nothing is done about a violation.
func (f *fixer) leave(v Violation) {
	why := map[Kind]string{
		SetAside: "its record is damaged; a server takes it back when that is whole again",
		Lost:     "there is nothing to restore it from",
		Index:    "a server takes the round back, which changes the record",
		Path:     "events are never changed",
		Unknown:  "set task_id to the highest id there is if this is a task, else add --set-aside",
		Balance:  "verify again while nothing moves",
		Plan:     "what a plan counts and what tasks wait for is never changed",
		Damaged:  "set it aside with --set-aside, or leave that to a server",
	}[v.Kind]
	if why == "" {
		why = "records of tasks are never changed"
	}
	v.Text += " [left: " + why + "]"
	f.repairs.Left = append(f.repairs.Left, v)
}

func (f *fixer) did(how string, why ...Violation) {
	for _, v := range why {
		v.Text += " [" + how + "]"
		f.repairs.Done = append(f.repairs.Done, v)
	}
}

// reindex puts a task where it belongs, in every index.
func (f *fixer) reindex(ctx context.Context, i *store.Inspection, why []Violation) error {
	if !f.opt.DryRun {
		if err := f.index(ctx, i); err != nil {
			return err
		}
	}
	f.did("put where it belongs", why...)
	return nil
}

// index puts a task into every index where it belongs, and out of the others.
func (f *fixer) index(ctx context.Context, i *store.Inspection) error {
	if i.Untold {
		if _, err := f.a.store.AskStop(ctx, askAgain(&i.TaskHeader)); err != nil {
			return err
		}
	}
	_, err := f.a.store.Reindex(ctx, &i.TaskHeader, f.a.grace)
	return err
}

// askAgain tells the worker of a round that was marked before; the record stays.
func askAgain(t *store.TaskHeader) store.Order {
	return store.Order{Writer: "tdf-manager", Move: statemachine.Move{
		ID: t.ID, Event: statemachine.Cancel, Actor: statemachine.Manager, AskStop: true,
		From: t.State, To: t.State, Round: t.Round, Rev: t.Rev, Deadline: statemachine.Never,
	}}
}

// finish repairs what the audit has collected.
func (f *fixer) finish(ctx context.Context) error {
	f.leaveRest()
	for _, s := range f.strays {
		if !f.opt.DryRun {
			if _, err := f.a.store.Unlist(ctx, s.index, []string{s.member}); err != nil {
				return err
			}
		}
		f.did("taken out of "+s.index.String(), s.Violation)
	}
	if len(f.uncounted) > 0 && !f.opt.DryRun {
		if _, err := f.a.store.RecountAll(ctx); err != nil {
			return err
		}
	}
	f.did("counted anew", f.uncounted...)
	return nil
}

// leaveRest leaves what belongs to no single task.
func (f *fixer) leaveRest() {
	for _, v := range f.a.report.Violations {
		if v.Kind == Path || v.Kind == Balance {
			f.leave(v)
		}
	}
}

// suspect remembers an id that was never given out.
func (f *fixer) suspect(v Violation) {
	if !f.opt.SetAside {
		f.leave(v)
		return
	}
	if !slices.ContainsFunc(f.pending, func(p pending) bool { return p.id == v.ID }) {
		f.pending = append(f.pending, pending{id: v.ID, why: []Violation{v}})
	}
}

// mendSets repairs what stands still. It comes before the look at the indices,
// because a task that is put where it belongs may bring its bucket back.
func (a *auditor) mendSets(ctx context.Context) error {
	f := a.fix
	if f == nil || len(f.pending) == 0 {
		return nil
	}
	if !timing.Pause(ctx, f.wait) {
		return ctx.Err()
	}
	for part := range slices.Chunk(f.pending, chunk) {
		if err := f.mend(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// mend repairs the sets of tasks that have not changed since they were seen.
func (f *fixer) mend(ctx context.Context, part []pending) error {
	ids := make([]int64, len(part))
	for i := range part {
		ids[i] = part[i].id
	}
	found, now, err := f.a.store.Inspect(ctx, ids)
	if err != nil {
		return err
	}
	for i := range found {
		p, t := &part[i], &found[i]
		switch {
		case p.fingerprint != "" && p.fingerprint != t.Fingerprint():
			f.stay(p, "it has moved meanwhile; verify again")
		case t.Err != nil:
			err = f.setAside(ctx, p, t, now)
		case p.fingerprint == "":
			f.stay(p, "")
		default:
			err = f.relist(ctx, p, t, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stay leaves a task as it is; the reason is that of the kind if it is empty.
func (f *fixer) stay(p *pending, why string) {
	for _, v := range p.why {
		if why == "" {
			f.leave(v)
			continue
		}
		v.Text += " [left: " + why + "]"
		f.repairs.Left = append(f.repairs.Left, v)
	}
}

// setAside takes a damaged task out of all sets.
func (f *fixer) setAside(ctx context.Context, p *pending, t *store.Inspection, now statemachine.Time) error {
	if !f.opt.SetAside {
		f.stay(p, "")
		return nil
	}
	if !f.opt.DryRun {
		done, err := f.a.store.SetAside(ctx, t, now)
		if err != nil {
			return err
		}
		if !done {
			f.stay(p, "it has moved meanwhile; verify again")
			return nil
		}
	}
	f.did("set aside", p.why...)
	return nil
}

// relist makes the state sets agree with the record. Where a client in another
// language may have archived the task the record is behind, which is a server's business.
func (f *fixer) relist(ctx context.Context, p *pending, t *store.Inspection, now statemachine.Time) error {
	if t.State.Ended() && slices.Contains(t.Listed, statemachine.Archived) {
		f.stay(p, "it may have been archived; a server completes the record")
		return nil
	}
	if !f.opt.DryRun {
		done, err := f.a.store.Relist(ctx, t, t.State, now)
		if err == nil && done && !t.Abandoned {
			err = f.index(ctx, t)
		}
		if err != nil || !done {
			f.stay(p, "it has moved meanwhile; verify again")
			return err
		}
	}
	f.did("listed in "+string(t.State)+" alone", p.why...)
	return nil
}
