package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// planned is a task of a plan, as a list of them shows it.
type planned struct {
	id             int64
	step           string // what it is called in the plan, empty for nothing
	program, input string
	end            statemachine.State // the state it is in if it has not ended
	needs          []store.Need
	doomedBy       int64
	skipped        bool
}

// state is for people: a skipped task is no cancelled one.
func (t *planned) state() string {
	if t.skipped {
		return "skipped"
	}
	return string(t.end)
}

// plannedFields are the fields of a task that are read for it.
var plannedFields = []string{
	programField, inputField, argvField, stateField, "outcome", "needs", "doomed_by", "skipped", "retried_by", stepField,
}

// plannedTasks reads the tasks of a plan, each behind all that it needs. A retry
// stands for what it repeats, also where that is needed.
func (s *session) plannedTasks(ctx context.Context, plan int64) ([]*planned, error) {
	var all []*planned
	retries := map[int64]int64{}
	for offset := 0; ; offset += page {
		ids, err := s.manager.PlanTasks(ctx, plan, offset, page)
		if err != nil {
			return nil, fmt.Errorf("read plan %d: %w", plan, err)
		}
		if len(ids) == 0 {
			return inPlanOrder(all, retries), nil
		}
		found, err := s.store.Fields(ctx, ids, plannedFields...)
		if err != nil {
			return nil, fmt.Errorf("read plan %d: %w", plan, err)
		}
		for i, f := range found {
			if next, err := strconv.ParseInt(f["retried_by"], 10, 64); err == nil && next > ids[i] {
				retries[ids[i]] = next
			} else {
				all = append(all, plannedOf(ids[i], f))
			}
		}
	}
}

// inPlanOrder puts every task behind what it needs: a retry was added after those
// that need it.
func inPlanOrder(all []*planned, retries map[int64]int64) []*planned {
	left := map[int64]*planned{}
	for _, t := range all {
		left[t.id] = t
	}
	sorted := make([]*planned, 0, len(all))
	var visit func(t *planned)
	visit = func(t *planned) {
		delete(left, t.id)
		for i := range t.needs {
			need := &t.needs[i]
			for retries[need.Task] > need.Task {
				need.Task = retries[need.Task]
			}
			if before := left[need.Task]; before != nil {
				visit(before)
			}
		}
		sorted = append(sorted, t)
	}
	for _, t := range all {
		if left[t.id] != nil {
			visit(t)
		}
	}
	return sorted
}

func plannedOf(id int64, f map[string]string) *planned {
	number := func(name string) int64 { n, _ := strconv.ParseInt(f[name], 10, 64); return n }
	var argv []string
	if text := f[argvField]; text != "" {
		_ = json.Unmarshal([]byte(text), &argv) // what is damaged is shown as nothing
	}
	t := statemachine.Task{State: statemachine.State(f[stateField]), Outcome: statemachine.State(f["outcome"])}
	p := &planned{
		id: id, step: f[stepField], program: f[programField], input: inputText(f[inputField], argv), end: t.End(),
		needs: store.ParseNeeds(f["needs"]), doomedBy: number("doomed_by"), skipped: f["skipped"] == "1",
	}
	if f == nil {
		p.end = "missing"
	}
	return p
}
