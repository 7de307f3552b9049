package series

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// A series is changed as a whole: when it is due, and when it is to be due once its task has ended, if that says nothing.
func TestEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, o := t.Context(), manager.ChangeOptions{}
	w.add(Definition{ETA: true, Start: at(-100), Missed: MissedAll})
	if s := w.get(); !s.Next.Equal(at(-100)) || !s.Modified.Equal(noon) {
		t.Errorf("a start in the past counts: %+v", s)
	}
	edit := func(change func(*Series), o manager.ChangeOptions) *Series {
		t.Helper()
		s, err := Edit(ctx, w.m, "k", func(s *Series) error {
			change(s)
			return nil
		}, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := edit(func(s *Series) { s.Next = at(5) }, manager.ChangeOptions{DryRun: true}); !s.Next.Equal(at(5)) || !s.Modified.Equal(noon) {
		t.Errorf("%+v", s)
	}
	w.StepClock(t, task.Stamp(at(1)))
	edit(func(s *Series) { s.Next, s.Key = at(20), "other" }, o)
	if s := w.get(); !s.Next.Equal(at(20)) || s.Modified.Before(at(1)) {
		t.Errorf("%+v", s)
	}
	w.pass(19)
	w.tasks(0)
	w.pass(20)
	w.tasks(1)
	edit(func(s *Series) { s.Fallback = at(40) }, o)
	w.end(1, 30)
	w.pass(21)
	if s := w.get(); !s.Next.Equal(at(30)) || !s.Fallback.IsZero() {
		t.Errorf("its program has said when: %+v", s)
	}
	w.pass(30)
	edit(func(s *Series) { s.Fallback = at(50) }, o)
	w.end(2, 0)
	w.pass(31)
	if s := w.get(); !s.Next.Equal(at(50)) || !s.Fallback.IsZero() || s.Over() {
		t.Errorf("its program has said nothing: %+v", s)
	}
	bad := errors.New("no")
	if _, err := Edit(ctx, w.m, "k", func(*Series) error { return bad }, o); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	if _, err := Edit(ctx, w.m, "k", func(s *Series) error {
		s.Task["queue"] = jsonOf("none")
		return nil
	}, o); !errors.Is(err, task.ErrNoQueue) || w.get().Task["queue"] != nil {
		t.Errorf("error %v", err)
	}
}

// What Set does to a series whose task runs is what it did before there was a time to fall back to.
func TestSetLeavesFallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(Definition{ETA: true})
	w.pass(0)
	_, err := Set(t.Context(), w.m, "k", func(d *Definition) error {
		d.Start = at(99)
		return nil
	}, manager.ChangeOptions{})
	if s := w.get(); err != nil || !s.Fallback.IsZero() || !s.Next.IsZero() || !s.Start.Equal(at(99)) {
		t.Errorf("%+v, error %v", s, err)
	}
	w.end(1, 0)
	w.pass(1)
	if s := w.get(); !s.Over() {
		t.Errorf("%+v", s)
	}
}

// A series goes only if it may go as it is by then, and what began meanwhile is told.
func TestRemoveIf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, o := t.Context(), manager.ChangeOptions{}
	w.add(Definition{ETA: true, Start: at(10)})
	if s, removed, err := RemoveIf(ctx, w.m, "k", func(*Series) bool { return false }, o); removed || err != nil || s.Number != 0 {
		t.Errorf("%+v, %v, error %v", s, removed, err)
	}
	if _, removed, err := RemoveIf(ctx, w.m, "k", func(*Series) bool { return true }, manager.ChangeOptions{DryRun: true}); removed || err != nil {
		t.Errorf("%v, error %v", removed, err)
	}
	asked := 0
	s, removed, err := RemoveIf(ctx, w.m, "k", func(*Series) bool {
		if asked++; asked == 1 {
			w.pass(10) // its occurrence begins between the look and the removal
		}
		return true
	}, o)
	if !removed || err != nil || asked != 2 || !slices.Equal(s.Live, []int64{1}) {
		t.Errorf("%+v, %v, asked %d times, error %v", s, removed, asked, err)
	}
	if _, removed, err := RemoveIf(ctx, w.m, "k", func(*Series) bool { return true }, o); removed || !errors.Is(err, task.ErrNoRecord) {
		t.Errorf("%v, error %v", removed, err)
	}
	w.pass(10 + int(time.Hour/time.Second))
	w.tasks(1)
}
