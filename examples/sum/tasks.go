package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/manager"
)

// begin opens the tasks of level 0; those that are there already stay as they are.
func (a *adder) begin(ctx context.Context, m *manager.Manager) error {
	opened, err := m.OpenEach(ctx, a.first())
	for i, o := range opened {
		p := place{index: int64(i)}
		a.ids[p] = o.ID
		if !o.Existing {
			fmt.Fprintf(a.out, "creating task for numbers: %s\n", list(a.tree.numbers(p.index)))
		}
	}
	return err
}

func (a *adder) first() iter.Seq[manager.Spec] {
	return func(yield func(manager.Spec) bool) {
		for i := range a.tree.width(0) {
			if !yield(a.spec(place{index: i}, a.tree.numbers(i))) {
				return
			}
		}
	}
}

// open opens the task of a place, or finds the one that is there.
func (a *adder) open(ctx context.Context, m *manager.Manager, p place, numbers []string) (int64, error) {
	opened, err := m.OpenEach(ctx, slices.Values([]manager.Spec{a.spec(p, numbers)}))
	if err != nil {
		return 0, err
	}
	a.ids[p] = opened[0].ID
	if !opened[0].Existing {
		a.created = append(a.created, numbers)
	}
	return a.ids[p], nil
}

// spec is the task that adds the numbers up. With its key it is opened once,
// however often and by however many managers it is asked for.
func (a *adder) spec(p place, numbers []string) manager.Spec {
	// The path is relative to the directory in which a worker was started.
	return manager.Spec{
		Program: "sum", Source: "rsync:run.sh", Input: strings.Join(numbers, " "), Key: a.tree.key(p),
	}
}

// list writes numbers as the example of 2017 did: ['10', '11'].
func list(numbers []string) string {
	if len(numbers) == 0 {
		return "[]"
	}
	return "['" + strings.Join(numbers, "', '") + "']"
}
