package manager

import (
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// StartIn and EndIn count from the opening by the clock of Redis, which is hours ahead of this one; below 0 they
// are no start and no end, whatever the defaults are.
func TestStartIn(t *testing.T) {
	t.Parallel()
	clock := redistest.NewClock(t)
	clock.Set(t, 5*time.Hour)
	srv, ns := redistest.Start(t, redistest.WithClock(clock)), redistest.Namespace(t)
	m := newManager(t, ns, at(srv.Socket(), "0"), withSettings("task_defaults.start_after=4000000000", "task_defaults.end_before=4500000000"))
	before, err := m.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, s := range []task.Spec{
		{Program: "p", StartIn: 10 * time.Minute, EndIn: time.Hour},
		{Program: "p", StartIn: -1, EndIn: -1},
		{Program: "p"},
	} {
		ids = append(ids, mustOpen(t, m, 1, s)...)
	}
	after, err := m.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := m.Tasks(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	for of, got := range map[time.Duration]time.Time{10 * time.Minute: opened[0].StartAfter, time.Hour: opened[0].EndBefore} {
		if got.Before(before.Add(of).Truncate(time.Microsecond)) || got.After(after.Add(of)) {
			t.Errorf("%v after its opening is %v, want %v to %v", of, got, before.Add(of), after.Add(of))
		}
	}
	if o := opened[0]; o.StartIn != 0 || o.EndIn != 0 {
		t.Errorf("read: %v, %v, want moments only", o.StartIn, o.EndIn)
	}
	if o := opened[1]; !o.StartAfter.IsZero() || !o.EndBefore.IsZero() {
		t.Errorf("from %v to %v, want no bounds", o.StartAfter, o.EndBefore)
	}
	if o := opened[2]; o.StartAfter.Unix() != 4000000000 || o.EndBefore.Unix() != 4500000000 {
		t.Errorf("from %v to %v, want the defaults", o.StartAfter, o.EndBefore)
	}
	_, err = m.Submit(t.Context(), task.Spec{Program: "p", StartIn: -1, EndIn: time.Minute})
	if err != nil {
		t.Error(err)
	}
	if _, err = m.Submit(t.Context(), task.Spec{Program: "p", EndIn: time.Minute}); err == nil {
		t.Error("opened, want a refusal: it ends before its default start")
	}
}

// A task that a server opens later cannot say when that is.
func TestNoStartInLater(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	plan := mustPlan(t, m, task.PlanSpec{})
	err := m.SubmitLater(t.Context(), plan, nil, []LaterStep{{Name: "s", Specs: []task.Spec{{Program: "p", StartIn: time.Minute}}}})
	if fe, ok := errors.AsType[*statemachine.FieldError](err); !ok || fe.Field != "start_in" {
		t.Errorf("%v, want start_in refused", err)
	}
}
