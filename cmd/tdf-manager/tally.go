package main

import (
	"errors"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// tally is what became of tasks so far.
type tally struct {
	effects []effect
	dryRun  bool
	// done are the tasks by the name of the effect.
	done map[string][]affected
	// refused are those that did not change, with the state they are in;
	// missing are not there.
	refused []refusal
	missing []int64
}

// affected is a task that was changed, and the one opened for it if there is one.
type affected struct{ id, opened int64 }

// refusal is a task that stays as it is.
type refusal struct {
	id    int64
	state statemachine.State
	err   error
}

func newTally(effects []effect, dryRun bool) *tally {
	return &tally{effects: effects, dryRun: dryRun, done: map[string][]affected{}}
}

func (t *tally) add(effect string, task affected) { t.done[effect] = append(t.done[effect], task) }

// refuse notes a task that did not change.
func (t *tally) refuse(id int64, state statemachine.State, err error) {
	if errors.Is(err, manager.ErrNotFound) && !errors.Is(err, manager.ErrPurged) {
		t.missing = append(t.missing, id)
		return
	}
	t.refused = append(t.refused, refusal{id: id, state: state, err: err})
}

// changed is the number of tasks that were changed.
func (t *tally) changed() int {
	n := 0
	for _, tasks := range t.done {
		n += len(tasks)
	}
	return n
}

func (t *tally) empty() bool { return t.changed()+len(t.refused)+len(t.missing) == 0 }

// refusedIDs are the tasks that did not change.
func (t *tally) refusedIDs() []int64 {
	ids := make([]int64, len(t.refused))
	for i := range t.refused {
		ids[i] = t.refused[i].id
	}
	return ids
}
