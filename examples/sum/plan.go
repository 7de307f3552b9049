package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/task"
)

// reduction is the sum as a plan: all its tasks are opened at once, and each gets the
// results of those that it needs as words. Nothing has to watch them.
type reduction struct {
	tree

	plan  *plan.Plan
	tasks []*plan.Task // what a task needs stands before it
}

// planned adds the numbers up without a loop.
func planned(ctx context.Context, m *manager.Manager, out io.Writer, t tree) (int64, error) {
	// With the key, the same sum begun again goes on with the plan of the first time.
	key := fmt.Sprintf("sum %d %d %d", t.from, t.to, t.bucket)
	p, err := plan.New(ctx, m, key, plan.WithRequestKey(key))
	if err != nil {
		return 0, err
	}
	r := &reduction{tree: t, plan: p}
	r.build()
	if err := p.Ready(ctx); err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "plan %d has %d tasks, of which %d wait for others\n", p.ID(), len(r.tasks), int64(len(r.tasks))-t.width(0))
	status, err := p.Wait(ctx)
	if err != nil {
		return 0, err
	}
	if status.State != task.PlanCompleted {
		return 0, r.cause(ctx, m)
	}
	return r.result(ctx)
}

// build adds a task for each bucket of numbers, and above them one for each two.
func (r *reduction) build() {
	var level []plan.Dep
	for i := range r.width(0) {
		level = append(level, r.add(r.numbers(i)))
	}
	for len(level) > 1 {
		var above []plan.Dep
		for pair := range slices.Chunk(level, 2) {
			if len(pair) == 2 {
				pair = []plan.Dep{r.add(nil, pair...)}
			}
			above = append(above, pair...)
		}
		level = above
	}
}

// add adds a task for these numbers and the results of others.
func (r *reduction) add(numbers []string, others ...plan.Dep) *plan.Task {
	spec := task.Spec{Program: "sum", Source: "rsync:run.sh", Input: strings.Join(numbers, " ")}
	t := r.plan.Add(spec, others...)
	r.tasks = append(r.tasks, t)
	return t
}

// result is what the last task has printed.
func (r *reduction) result(ctx context.Context) (int64, error) {
	last := r.tasks[len(r.tasks)-1]
	text, err := r.plan.Result(ctx, last)
	if err != nil {
		return 0, err
	}
	sum, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("task %d printed %q, which is not a number", last.ID(), text)
	}
	return sum, nil
}

// cause is why the plan has not been completed: the first task that did not succeed,
// since those that it needs have.
func (r *reduction) cause(ctx context.Context, m *manager.Manager) error {
	for _, each := range r.tasks {
		t, err := m.Task(ctx, each.ID())
		if err != nil {
			return err
		}
		if t.EndState() != "succeeded" {
			return failure(t)
		}
	}
	return errors.New("the plan was cancelled")
}
