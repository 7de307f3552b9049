package main

import (
	"io"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/crewtest"
	"github.com/tdf-go/tdf/internal/worktest"
	"github.com/tdf-go/tdf/manager"
)

// TestHandlerCalledTwice: a handler runs at least once, a result counts once.
func TestHandlerCalledTwice(t *testing.T) {
	t.Parallel()
	a := newAdder(3, io.Discard)
	task := &manager.Task{Fields: map[string]string{"0:running": "1", "0:output": "33\n"}}
	task.ID = 4
	for range 2 {
		if err := a.add(t.Context(), nil, task); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(a.parts, []string{"33"}) {
		t.Errorf("parts %v, want 33 once", a.parts)
	}
}

// TestOpenedAgain: an answer lost on the way does not open tasks twice.
func TestOpenedAgain(t *testing.T) {
	t.Parallel()
	place := crewtest.NewPlace(t)
	m := open(t, place)
	a := newAdder(3, io.Discard)
	for _, c := range []struct {
		opened int
		want   int64
	}{{0, 3}, {0, 3}, {1, 6}} {
		a.opened = c.opened
		if err := a.open(t.Context(), m, numbers(1, 9)); err != nil {
			t.Fatal(err)
		}
		if got := counts(t, place).Total(); got != c.want {
			t.Errorf("%d tasks after opening submission %d, want %d", got, c.opened, c.want)
		}
	}
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	var got []string
	for b := range buckets(numbers(1, 7), 3) {
		got = append(got, list(b))
	}
	want := []string{"['1', '2', '3']", "['4', '5', '6']", "['7']"}
	if !slices.Equal(got, want) {
		t.Errorf("buckets %v, want %v", got, want)
	}
	for range buckets(numbers(1, 3), 3) {
		break // must not yield again
	}
	if list(nil) != "[]" {
		t.Errorf("list(nil) = %q", list(nil))
	}
}

// TestTwoPartsAreAdded: the smallest number of parts for which work is left.
func TestTwoPartsAreAdded(t *testing.T) {
	t.Parallel()
	place := crewtest.NewPlace(t)
	m := open(t, place)
	a := newAdder(3, io.Discard)
	for _, c := range []struct {
		parts []string
		want  int64
	}{{nil, 0}, {[]string{"7"}, 0}, {[]string{"7", "8"}, 1}} {
		a.parts = c.parts
		if err := a.endRound(t.Context(), m, 0); err != nil {
			t.Fatal(err)
		}
		if got := counts(t, place).Total(); got != c.want {
			t.Errorf("%d tasks after a round with %v, want %d", got, c.parts, c.want)
		}
	}
}

// TestStop: a task that has succeeded is not done before it is archived.
func TestStop(t *testing.T) {
	t.Parallel()
	place := crewtest.NewPlace(t)
	m := open(t, place)
	a := newAdder(3, io.Discard)
	if !a.stop(t.Context(), m, 0) {
		t.Error("without tasks it does not stop")
	}
	if err := a.open(t.Context(), m, numbers(1, 3)); err != nil {
		t.Fatal(err)
	}
	if a.stop(t.Context(), m, 0) {
		t.Error("stops with an open task")
	}
	worktest.Drain(t, worktest.Open(t, place.Namespace), worktest.Echo)
	if c := counts(t, place); c.Left() != 0 || c.Unarchived() != 1 || a.stop(t.Context(), m, 0) {
		t.Errorf("stops with a task that has succeeded (%v)", c)
	}
}

func open(t *testing.T, place crewtest.Place) *manager.Manager {
	t.Helper()
	m, err := manager.New(t.Context(), "m", place.Config(t, "manager.cfg"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}
