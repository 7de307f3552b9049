package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/crewtest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/manager"
)

// adding is what run.sh does.
func adding(t *tasks.Claimed) worktest.Result {
	sum := 0
	for word := range strings.FieldsSeq(t.Spec.Input) {
		var n int
		if _, err := fmt.Sscan(word, &n); err != nil {
			return worktest.Result{Error: err.Error()}
		}
		sum += n
	}
	return worktest.Result{Output: fmt.Sprintln(sum)}
}

// begun opens the first tasks of the sum from 1 to 9 in threes, and works them.
func begun(t *testing.T, place crewtest.Place, adders ...*adder) *manager.Manager {
	t.Helper()
	m := open(t, place)
	for _, a := range adders {
		if err := a.begin(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	worktest.Drain(t, worktest.Open(t, place.Namespace), adding)
	return m
}

func newSum(from, to int64) *adder {
	return newAdder(tree{from: from, to: to, bucket: 3}, io.Discard)
}

// TestHandlerCalledTwice: a handler runs at least once, also in another manager
// that knows nothing; the task above is opened once, with each number once.
func TestHandlerCalledTwice(t *testing.T) {
	t.Parallel()
	place := crewtest.NewPlace(t)
	a, other := newSum(1, 9), newSum(1, 9)
	m := begun(t, place, a, other)
	if got := counts(t, place).Total(); got != 3 {
		t.Fatalf("%d tasks opened by two managers, want 3", got)
	}
	for id := range int64(3) {
		task, err := m.Task(t.Context(), id+1)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range []*adder{a, a, other, newSum(1, 9)} {
			each.ids = a.ids // of level 0
			if err := each.add(t.Context(), m, task); err != nil || each.failed != nil {
				t.Fatal(err, each.failed)
			}
		}
	}
	task, err := m.Task(t.Context(), 4)
	if err != nil || task.Input != "6 15 24" || counts(t, place).Total() != 4 {
		t.Errorf("task 4 adds %q, %v, %v, want 6 15 24, and no fifth", task.Input, err, counts(t, place))
	}
}

// TestResult: it is found by a manager that has handled nothing.
func TestResult(t *testing.T) {
	t.Parallel()
	place := crewtest.NewPlace(t)
	m := begun(t, place, newSum(1, 9))
	a := newSum(1, 9)
	begun(t, place, a)
	if sum, err := a.result(t.Context(), m); err == nil {
		t.Errorf("result %d before there is one", sum)
	}
	worktest.Drain(t, worktest.Open(t, place.Namespace), adding)
	if sum, err := a.result(t.Context(), m); err != nil || sum != 45 {
		t.Errorf("result %d, %v, want 45", sum, err)
	}
	late := newSum(1, 9)
	worktest.Drain(t, worktest.Open(t, place.Namespace), worktest.Fail)
	begun(t, place, late)
	if sum, err := late.result(t.Context(), m); err != nil || sum != 45 {
		t.Errorf("result %d, %v, want 45", sum, err)
	}
}

// TestForeignTask: a task of another sum ends this one.
func TestForeignTask(t *testing.T) {
	t.Parallel()
	place := crewtest.NewPlace(t)
	m, a := begun(t, place, newSum(1, 3)), newSum(1, 9)
	task, err := m.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.add(t.Context(), m, task); err != nil || a.failed == nil || !a.stop(t.Context(), m) {
		t.Errorf("%v, failed %v, want it to end", err, a.failed)
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	tr := tree{from: 10, to: 100, bucket: 3}
	var widths []int64
	for level := range tr.top() + 1 {
		widths = append(widths, tr.width(level))
	}
	if want := []int64{31, 11, 4, 2, 1}; !slices.Equal(widths, want) {
		t.Errorf("widths %v, want %v", widths, want)
	}
	if got := list(tr.numbers(30)); got != "['100']" {
		t.Errorf("the last numbers are %s", got)
	}
	last := place{1, 10}
	if got := tr.children(last); !slices.Equal(got, []place{{0, 30}}) {
		t.Errorf("children of %v: %v", last, got)
	}
	if got := tr.parent(place{0, 30}); got != last {
		t.Errorf("parent %v, want %v", got, last)
	}
	if p, ok := tr.placeOf(tr.key(last)); !ok || p != last {
		t.Errorf("the key %q is read as %v, %v", tr.key(last), p, ok)
	}
	if _, ok := (tree{10, 100, 4}).placeOf(tr.key(last)); ok {
		t.Error("the key of another tree is taken")
	}
	if list(nil) != "[]" {
		t.Errorf("list(nil) = %q", list(nil))
	}
}

// TestStop: a task that has succeeded is not done before it is archived.
func TestStop(t *testing.T) {
	t.Parallel()
	place := crewtest.NewPlace(t)
	m := open(t, place)
	a := newSum(1, 3)
	if !a.stop(t.Context(), m) {
		t.Error("without tasks it does not stop")
	}
	if err := a.begin(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if a.stop(t.Context(), m) {
		t.Error("stops with an open task")
	}
	worktest.Drain(t, worktest.Open(t, place.Namespace), worktest.Echo)
	if c := counts(t, place); c.Left() != 0 || c.Unarchived() != 1 || a.stop(t.Context(), m) {
		t.Errorf("stops with a task that has succeeded (%v)", c)
	}
}

func open(t *testing.T, place crewtest.Place) *manager.Manager {
	t.Helper()
	return manager.New(place.Site(t), "m", manager.Options{})
}
