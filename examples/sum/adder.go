package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// adder is the manager's side of the example. All its methods are called by
// Run, one at a time. What it knows it can find out again from the tasks:
// nothing is lost with the process.
type adder struct {
	tree tree
	out  io.Writer
	// ids are the tasks of places, sums what they have printed, as far as known.
	ids  map[place]int64
	sums map[place]string
	// parts and created are what this round has brought, to be printed.
	parts   []string
	created [][]string
	// failed is why there will be no result.
	failed error
}

func newAdder(t tree, out io.Writer) *adder {
	return &adder{tree: t, out: out, ids: map[place]int64{}, sums: map[place]string{}}
}

func (a *adder) handlers(m *manager.Manager) manager.Handlers {
	return manager.Handlers{
		Succeeded: func(ctx context.Context, t *task.Task) error { return a.add(ctx, m, t) },
		// A sum without one of its parts is wrong: whatever else ends a task, ends all.
		Unhandled: a.giveUp,
		AfterPass: func(ctx context.Context, pass int) error { return a.afterPass(ctx, m, pass) },
		Stop:      func(ctx context.Context, _ int) bool { return a.stop(ctx, m) },
	}
}

// add takes the partial sum that a task has printed, and opens the task that
// needs it, if that was the last one it needs. Called again, it opens no
// second one: the key of a task says which place of the tree it has.
func (a *adder) add(ctx context.Context, m *manager.Manager, t *task.Task) error {
	p, ok := a.tree.placeOf(t.Key)
	if !ok {
		a.failed = fmt.Errorf("task %d does not belong to this sum", t.ID)
		return nil
	}
	a.ids[p] = t.ID
	if !a.learn(p, t) {
		return nil // archive the task, also one that printed nonsense
	}
	a.parts = append(a.parts, a.sums[p])
	if p.level == a.tree.top() {
		return nil
	}
	_, err := a.id(ctx, m, a.tree.parent(p))
	return err
}

// learn notes what a task that has ended printed; it reports whether that was a
// number.
func (a *adder) learn(p place, t *task.Task) bool {
	part := strings.TrimSpace(t.Output())
	switch _, err := strconv.ParseInt(part, 10, 64); {
	case t.EndState() != "succeeded":
		a.failed = failure(t)
	case err != nil:
		a.failed = fmt.Errorf("task %d printed %q, which is not a number", t.ID, part)
	default:
		a.sums[p] = part
		return true
	}
	return false
}

func (a *adder) giveUp(_ context.Context, t *task.Task) error {
	a.failed = failure(t)
	return nil
}

func failure(t *task.Task) error {
	return fmt.Errorf("task %d (%s %s) has %s: %s", t.ID, t.Program, t.Input, t.EndState(), strings.TrimSpace(t.Failure()))
}

// id returns the task of a place; it is opened when all its numbers are there.
// Before that it is 0.
func (a *adder) id(ctx context.Context, m *manager.Manager, p place) (int64, error) {
	if id, known := a.ids[p]; known {
		return id, nil
	}
	numbers, err := a.numbers(ctx, m, p)
	if err != nil || numbers == nil {
		return 0, err
	}
	return a.open(ctx, m, p, numbers)
}

// numbers are what the task of a place adds up, nil while one is not there.
func (a *adder) numbers(ctx context.Context, m *manager.Manager, p place) ([]string, error) {
	var numbers []string
	for _, child := range a.tree.children(p) {
		number, err := a.sum(ctx, m, child)
		if err != nil || number == "" {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// sum is what the task of a place has printed, empty while it has not ended.
func (a *adder) sum(ctx context.Context, m *manager.Manager, p place) (string, error) {
	if sum, known := a.sums[p]; known {
		return sum, nil
	}
	id, err := a.id(ctx, m, p)
	if err != nil || id == 0 {
		return "", err
	}
	t, err := m.Task(ctx, id)
	if err != nil {
		return "", err
	}
	if t.EndState() != "" {
		a.learn(p, t)
	}
	return a.sums[p], nil
}

// afterPass says what this pass brought.
func (a *adder) afterPass(ctx context.Context, m *manager.Manager, pass int) error {
	counts, err := m.Count(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "ending round %d (%s) (%d tasks left)\n", pass, list(a.parts), counts.Unarchived())
	for _, numbers := range a.created {
		fmt.Fprintf(a.out, "creating task for numbers: %s\n", list(numbers))
	}
	a.parts, a.created = nil, nil
	return nil
}

// stop ends the run when every task is archived: the last number of a task opens
// the task before it is archived, so none is on its way then.
func (a *adder) stop(ctx context.Context, m *manager.Manager) bool {
	if a.failed != nil {
		return true
	}
	counts, err := m.Count(ctx)
	return err == nil && counts.Unarchived() == 0
}

// result is what the task at the top has printed.
func (a *adder) result(ctx context.Context, m *manager.Manager) (int64, error) {
	if a.failed != nil {
		return 0, a.failed
	}
	sum, err := a.sum(ctx, m, place{level: a.tree.top()})
	switch {
	case err != nil:
		return 0, err
	case a.failed != nil:
		return 0, a.failed
	case sum == "":
		return 0, errors.New("all tasks have ended without a result: did something else work on the namespace?")
	}
	return strconv.ParseInt(sum, 10, 64)
}

// begin opens the tasks of level 0; those that are there already stay as they are.
func (a *adder) begin(ctx context.Context, m *manager.Manager) error {
	opened, err := m.SubmitAll(ctx, a.first())
	for i, o := range opened {
		p := place{index: int64(i)}
		a.ids[p] = o.ID
		if !o.Existing {
			fmt.Fprintf(a.out, "creating task for numbers: %s\n", list(a.tree.numbers(p.index)))
		}
	}
	return err
}

func (a *adder) first() iter.Seq[task.Spec] {
	return func(yield func(task.Spec) bool) {
		for i := range a.tree.width(0) {
			if !yield(a.spec(place{index: i}, a.tree.numbers(i))) {
				return
			}
		}
	}
}

// open opens the task of a place, or finds the one that is there.
func (a *adder) open(ctx context.Context, m *manager.Manager, p place, numbers []string) (int64, error) {
	opened, err := m.SubmitAll(ctx, slices.Values([]task.Spec{a.spec(p, numbers)}))
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
func (a *adder) spec(p place, numbers []string) task.Spec {
	// The path is relative to the directory in which a worker was started.
	return task.Spec{
		Program: "sum", Source: "rsync:run.sh", Input: strings.Join(numbers, " "), Key: a.tree.key(p),
	}
}

// list writes numbers as Python does: ['10', '11'].
func list(numbers []string) string {
	if len(numbers) == 0 {
		return "[]"
	}
	return "['" + strings.Join(numbers, "', '") + "']"
}
