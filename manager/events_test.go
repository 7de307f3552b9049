package manager

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// interrupted loses some calls to an outage, and counts the others.
type interrupted struct {
	namespace

	lost, calls int
}

func (i *interrupted) Events(ctx context.Context, first int64, n int) ([]task.Event, error) {
	if i.lost > 0 {
		i.lost--
		return nil, fmt.Errorf("events: %w", task.ErrUnreachable)
	}
	i.calls++
	return i.namespace.Events(ctx, first, n)
}

// The events of a life come in order, each as it happens, and once, also if Redis is away for a moment.
func TestEvents(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns)
	store := &interrupted{namespace: m.store}
	m.store = store
	happens := []func(){
		func() { mustOpen(t, m, 1, spec()) },
		func() { worktest.Drain(t, s, worktest.Echo) },
		func() {
			finish := background(t, newManager(t, ns, quick()), Handlers{Unhandled: Archive})
			until(t, m, "it to be archived", archived(1))
			if err := finish(); err != nil {
				t.Error(err)
			}
		},
	}
	m.after = func(d time.Duration) <-chan time.Time {
		if d == waitPoll && len(happens) > 0 { // all was given
			happens[0]()
			happens, store.lost = happens[1:], 2
		}
		return time.After(time.Millisecond)
	}
	if newest, err := m.NewestEvent(t.Context()); newest != 0 || err != nil {
		t.Errorf("newest event %d, %v, want none", newest, err)
	}
	got, last := "", int64(0)
	for e, err := range m.Events(t.Context(), 0) {
		if err != nil || e.Err != nil || e.ID != 1 || e.At.IsZero() || e.Seq <= last {
			t.Fatalf("%+v after %d, %v", e, last, err)
		}
		got += fmt.Sprintf("%s: %s to %s\n", e.Event, e.From, e.To)
		if last = e.Seq; e.To == sm.Archived {
			break
		}
	}
	want := "create:  to open\nclaim: open to running\nreport: running to executed\nsettle: executed to succeeded\narchive: succeeded to archived\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if newest, err := m.NewestEvent(t.Context()); newest != last || err != nil {
		t.Errorf("newest event %d, %v, want %d", newest, err, last)
	}
}

// Who begins after an event gets all later ones, a thousand in a call, also one that cannot be read.
func TestEventsAfter(t *testing.T) {
	t.Parallel()
	const all = 2500
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	mustOpen(t, m, all, spec())
	redistest.Shared(t).Do(t, "XADD", ns+":events", "999999-0", "id", "none")
	store := &interrupted{namespace: m.store}
	m.store = store
	after := int64(500)
	for e, err := range m.Events(t.Context(), after) {
		if err != nil {
			t.Fatal(err)
		}
		if after = e.Seq; e.Err != nil {
			break
		}
	}
	if after != 999999 || store.calls != 3 {
		t.Errorf("the last is %d after %d calls, want 999999 after 3", after, store.calls)
	}
}

// The events of one task are found among all, a thousand in a call; an outage is told at once.
func TestEventsOf(t *testing.T) {
	t.Parallel()
	const all = 2500
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	if found, from, err := m.EventsOf(t.Context(), 1); len(found) > 0 || from != 0 || !errors.Is(err, task.ErrNoTask) {
		t.Errorf("%+v from %d, %v, want no task", found, from, err)
	}
	mustOpen(t, m, all, spec())
	redis := redistest.Shared(t)
	redis.Do(t, "XADD", ns+":events", "999999-0", "id", strconv.Itoa(all))
	redis.Do(t, "XTRIM", ns+":events", "MINID", "101") // an entry has the openings of one call
	store := &interrupted{namespace: m.store}
	m.store = store
	found, from, err := m.EventsOf(t.Context(), all)
	if len(found) != 1 || found[0].Event != sm.Create || found[0].ID != all || from != 101 || store.calls != 3 || err != nil {
		t.Errorf("%+v from %d after %d calls, %v, want the opening, from 101, after 3", found, from, store.calls, err)
	}
	if found, from, err := m.EventsOf(t.Context(), 1); len(found) > 0 || from != 101 || err != nil {
		t.Errorf("%+v from %d, %v, want none of what was trimmed", found, from, err)
	}
	store.lost = 1
	if _, _, err := m.EventsOf(t.Context(), all); !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("%v, want an outage", err)
	}
}

// Where events may be missing, a gap is told, and reading goes on behind it.
func TestEventsGap(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, ns string, m *Manager){
		"trimmed": func(t *testing.T, ns string, m *Manager) {
			mustOpen(t, m, 3, spec())
			redistest.Shared(t).Do(t, "XTRIM", ns+":events", "MINID", "3")
		},
		"forgotten": func(t *testing.T, ns string, _ *Manager) { // by a Redis that failed over
			redistest.Shared(t).Do(t, "XDEL", ns+":events", "2")
		},
		"flushed": func(t *testing.T, _ string, m *Manager) {
			if _, err := m.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"flushed, then filled": func(t *testing.T, _ string, m *Manager) {
			if _, err := m.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustOpen(t, m, 3, spec())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := redistest.Namespace(t)
			m, other := newManager(t, ns), newManager(t, ns)
			mustOpen(t, m, 2, spec())
			m.after = func(time.Duration) <-chan time.Time { return time.After(time.Millisecond) }
			var gap *GapError
			var newest, fresh int64
			var readErr error
			for e, err := range m.Events(t.Context(), 0) {
				switch {
				case errors.As(err, &gap):
					newest, readErr = other.NewestEvent(t.Context())
					fresh = mustOpen(t, other, 1, spec())[0]
				case err != nil:
					t.Fatal(err)
				case e.Seq == 2 && gap == nil:
					lose(t, ns, other)
					continue
				}
				if gap != nil && err == nil {
					if e.ID != fresh {
						t.Errorf("event %+v after the gap, want the one of task %d", e, fresh)
					}
					break
				}
			}
			if *gap != (GapError{After: 2, Newest: newest}) || readErr != nil {
				t.Errorf("got %+v, want one from 2 to %d, %v", *gap, newest, readErr)
			}
		})
	}
}

func TestEventsEnd(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	mustOpen(t, m, 1, spec())
	for e, err := range m.Events(t.Context(), -1) {
		field, _ := errors.AsType[*sm.FieldError](err)
		if field == nil || field.Field != "after" || e != (task.Event{}) {
			t.Errorf("%+v, %v, want an error about after", e, err)
		}
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for e, err := range m.Events(ctx, 0) {
		if last = err; err == nil && e.ID == 1 {
			cancel(why)
		}
	}
	if !errors.Is(last, why) {
		t.Errorf("the last error is %v, want %v", last, why)
	}
}
