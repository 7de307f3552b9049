package audit

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// sight is one task as seen in one look.
type sight struct {
	store.Inspection
	// stamps are the fields of the rounds that must be there; see fieldsOf.
	stamps map[string]string
	aside  *store.Aside
	// adopted says that a server has had the task, so its indices must be there.
	adopted bool
	now     statemachine.Time
}

// look reads tasks with what the audit needs of them.
func (a *auditor) look(ctx context.Context, ids []int64) ([]sight, error) {
	found, now, err := a.store.Inspect(ctx, ids)
	if err != nil {
		return nil, err
	}
	stamps, err := a.store.Fields(ctx, ids, stampFields(found)...)
	if err != nil {
		return nil, err
	}
	if err := a.readAsides(ctx, found); err != nil {
		return nil, err
	}
	sights := make([]sight, len(found))
	for i := range found {
		sights[i] = sight{Inspection: found[i], stamps: stamps[i], now: now, adopted: found[i].ID <= a.adopted}
		if aside, ok := a.asides[found[i].ID]; ok {
			sights[i].aside = &aside
		}
	}
	return sights, nil
}

// readAsides reads the tasks that were set aside, if there is any need.
func (a *auditor) readAsides(ctx context.Context, found []store.Inspection) error {
	for i := range found {
		if found[i].Err == nil && len(found[i].Listed) > 0 {
			continue
		}
		list, err := a.store.Asides(ctx)
		for _, aside := range list {
			a.asides[aside.ID] = aside
		}
		return err
	}
	return nil
}

// mostRounds bounds how many rounds of a task are looked at; a spoilt round
// field may be any number.
const mostRounds = 100

// stampFields are the fields that may have to be there, for any of the tasks.
func stampFields(found []store.Inspection) []string {
	last := 0
	for i := range found {
		last = max(last, min(found[i].Round, mostRounds-1))
	}
	fields := make([]string, 0, 1+(1+len(statemachine.States()))*(last+1))
	fields = append(fields, "state")
	for n := range last + 1 {
		fields = append(fields, statemachine.RoundField(n, "worker"))
		for _, state := range statemachine.States() {
			fields = append(fields, statemachine.RoundField(n, string(state)))
		}
	}
	return fields
}

// unknown looks for ids in the sets that were never given out.
func (a *auditor) unknown(ctx context.Context) error {
	for _, state := range statemachine.States() {
		for offset := int64(0); ; offset += chunk {
			ids, err := a.store.IDs(ctx, state, offset, chunk, false)
			if err != nil {
				return err
			}
			if err := a.beyond(ctx, state, ids); err != nil {
				return err
			}
			if len(ids) == 0 {
				break
			}
		}
	}
	return nil
}

// beyond compares ids with the newest one; that may have grown meanwhile.
func (a *auditor) beyond(ctx context.Context, state statemachine.State, ids []int64) error {
	last := a.report.TaskID
	for _, id := range ids {
		if id > last {
			var err error
			if last, err = a.store.LastID(ctx); err != nil {
				return err
			}
		}
		if id > last || id < 1 {
			text := fmt.Sprintf("listed in %s, but the newest id is %d", state, last)
			a.report.Violations = append(a.report.Violations, Violation{ID: id, Kind: Unknown, Text: text})
		}
	}
	return nil
}
