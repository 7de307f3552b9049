package audit

import (
	"context"
	"slices"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

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
