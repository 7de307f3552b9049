package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/tdf-go/tdf/manager"
)

// try opens a task for each trial, waits until all are archived, and prints what
// became of them. It returns how many outcomes are not the expected ones.
func try(ctx context.Context, m *manager.Manager, out io.Writer, all []trial, pass int) (wrong int, err error) {
	ids, err := m.OpenAll(ctx, specs(all))
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "pass %d: %d tasks opened\n", pass, len(ids))
	got, err := outcomes(ctx, m)
	if err != nil {
		return 0, err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ttask\tprogram\texpected\tactual")
	for i, t := range all {
		mark := "ok"
		if !got[ids[i]].meets(t.want) {
			mark = "WRONG"
			wrong++
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%v\t%v\n", mark, ids[i], t.program, t.want, got[ids[i]])
	}
	if err := w.Flush(); err != nil {
		return wrong, fmt.Errorf("printing the outcomes: %w", err)
	}
	return wrong, nil
}

func specs(all []trial) func(yield func(manager.Spec) bool) {
	return func(yield func(manager.Spec) bool) {
		for _, t := range all {
			if !yield(manager.Spec{Program: t.program, Source: t.source, Input: t.input}) {
				return
			}
		}
	}
}

// outcomes runs the manager until every task is archived, and returns what
// became of them by their ids.
func outcomes(ctx context.Context, m *manager.Manager) (map[int64]outcome, error) {
	got := map[int64]outcome{}
	note := func(_ context.Context, _ *manager.Manager, t *manager.Task) error {
		got[t.ID] = outcomeOf(t)
		return nil
	}
	err := m.Run(ctx, manager.Handlers{
		Unhandled: note,
		Stop: func(ctx context.Context, m *manager.Manager, _ int) bool {
			counts, err := m.Count(ctx)
			return err == nil && counts.Unarchived() == 0
		},
	})
	if err == nil && ctx.Err() != nil {
		err = errors.New("stopped before the end")
	}
	return got, err
}
