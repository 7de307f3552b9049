package manager

import (
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A record and its tasks are written at once or not at all, by the rules of queues that are in force.
func TestWriteRecord(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, other, ctx := newManager(t, ns), newManager(t, ns), t.Context()
	now, err := m.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := task.Record{Kind: task.KindSeries, Name: "s", Value: "1", Due: now.Add(time.Hour)}
	spec := task.Spec{Program: "p", Queue: "q"}
	if _, err := m.WriteRecord(ctx, r, RecordTasks{Specs: []task.Spec{spec}}); !errors.Is(err, task.ErrNoQueue) {
		t.Errorf("without the queue: error %v", err)
	}
	if _, err := m.Record(ctx, r.Kind, r.Name); !errors.Is(err, task.ErrNoRecord) || !errors.Is(err, task.ErrNotFound) {
		t.Errorf("nothing was to be written: error %v", err)
	}
	priority := 7
	if _, err := other.AddQueue(ctx, task.QueueSpec{Name: "q", Defaults: task.Defaults{"priority": "7"}}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err = m.WriteRecord(ctx, r, RecordTasks{Specs: []task.Spec{spec, spec}, Watched: true})
	if err != nil || len(r.Opened) != 2 || r.Version == 0 {
		t.Fatalf("%+v, error %v", r, err)
	}
	if found, err := m.Task(ctx, r.Opened[0]); err != nil || found.Priority == nil || *found.Priority != priority {
		t.Errorf("%+v, error %v", found, err)
	}
	p, err := m.PendingRecords(ctx, r.Kind, 5)
	if err != nil || len(p.Records) != 0 || p.Total != 1 || !p.Next.Equal(r.Due) || p.Now.Before(now) {
		t.Errorf("%+v, error %v", p, err)
	}
	if _, err := m.Cancel(ctx, r.Opened[1:], ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if p, err = m.PendingRecords(ctx, r.Kind, 5); err != nil || len(p.Records) != 1 || p.Records[0].Ended != 1 {
		t.Errorf("%+v, error %v", p, err)
	}
	stale := r
	r.Value, r.Ended = "2", 1
	if r, err = other.WriteRecord(ctx, r, RecordTasks{}); err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]RecordTasks{"alone": {}, "with a task": {Specs: []task.Spec{spec}}} {
		_, err := m.WriteRecord(ctx, stale, w)
		if e, ok := errors.AsType[*task.RecordChangedError](err); !ok || e.Name != "s" || !errors.Is(err, task.ErrRecordChanged) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if n, err := m.NewestTask(ctx); n != 2 || err != nil {
		t.Errorf("%d tasks, error %v", n, err)
	}
	var names []string
	for one, err := range m.Records(ctx, r.Kind, "") {
		if err != nil || one.Value != "2" {
			t.Errorf("%+v, error %v", one, err)
		}
		names = append(names, one.Name)
	}
	if len(names) != 1 {
		t.Errorf("records %q", names)
	}
	if err := m.RemoveRecord(ctx, stale); !errors.Is(err, task.ErrRecordChanged) {
		t.Errorf("removed as it was: error %v", err)
	}
	for range 2 {
		if err := m.RemoveRecord(ctx, r); err != nil {
			t.Error(err)
		}
	}
}

// What a record cannot be is refused with the field.
func TestWriteRecordRefuses(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	for field, r := range map[string]task.Record{
		"kind":  {Kind: "other", Name: "n"},
		"name":  {Kind: task.KindSeries, Name: "a\nb"},
		"value": {Kind: task.KindSeries, Name: "n", Value: string(make([]byte, task.MaxRecordValue+1))},
	} {
		_, err := m.WriteRecord(t.Context(), r, RecordTasks{})
		if e, ok := errors.AsType[*statemachine.FieldError](err); !ok || e.Field != field {
			t.Errorf("%s: error %v", field, err)
		}
	}
	_, err := m.WriteRecord(t.Context(), task.Record{Kind: task.KindSeries, Name: "n"}, RecordTasks{Specs: []task.Spec{{Program: "a/b"}}})
	if _, ok := errors.AsType[*SpecError](err); !ok {
		t.Errorf("a task that cannot be: error %v", err)
	}
}
