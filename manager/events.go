package manager

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/task"
)

// GapError says that events may be missing. Redis keeps the newest only ([server] events),
// and none from before a flush; a Redis that fails over may lose some. What the events
// were followed for has to be read anew.
type GapError struct {
	// After is the event after which some may be missing.
	After int64
	// Newest is the newest event there was when that was found, 0 for none.
	Newest int64
}

// Error says between which events there is a gap.
func (e *GapError) Error() string {
	return fmt.Sprintf("events between %d and %d may be missing; read the tasks anew, and go on after %[2]d", e.After, e.Newest)
}

// Events gives the events of all tasks in their order: first those after the one whose Seq
// is after, then each as it happens, until ctx ends. For after, take the last event that was
// dealt with, what [Manager.NewestEvent] has returned, or 0 for all that Redis keeps.
// An event that cannot be read has its Err set.
//
// A *[GapError] comes without an event and ends nothing: the events after its Newest
// follow, unless the caller stops there. Any other error comes last: the cause of ctx, or what
// Redis refuses. While Redis is away Events goes on waiting.
//
// Clients in other languages leave no events, and with [server] events = 0 nobody does.
// Changes of tasks that neither end nor are archived may be given up to a second late.
func (m *Manager) Events(ctx context.Context, after int64) iter.Seq2[task.Event, error] {
	return func(yield func(task.Event, error) bool) {
		if after < 0 {
			yield(task.Event{}, fieldError("after", strconv.FormatInt(after, 10), "the number of an event, or 0 for the oldest"))
			return
		}
		r := &eventReader{m: m, after: after}
		err := m.watch(ctx, func() (more bool, err error) { return r.look(ctx) }, func() (over bool) { return !r.tell(yield) })
		if err != nil {
			yield(task.Event{}, waitEnded(ctx, "events", err))
		}
	}
}

// NewestEvent is the number of the newest event, 0 for none, so that [Manager.Events] begins
// now. Ask for it before reading the tasks that the events are about: then none is missed
// in between.
func (m *Manager) NewestEvent(ctx context.Context) (int64, error) {
	_, newest, err := m.store.EventSpan(ctx)
	return newest, err
}

// EventsOf reads the recorded events of one task, but none that cannot be read: it goes through all that Redis keeps, and waits for
// none. from is the number of the oldest event of the namespace, 0 for none: what came before is not recorded. The error matches
// [task.ErrNoTask] if there is neither an event nor a task.
func (m *Manager) EventsOf(ctx context.Context, id int64) (events []task.Event, from int64, err error) {
	for next := int64(0); ; {
		page, err := m.store.Events(ctx, next, eventPage)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range page {
			next = e.Seq + 1
			if from == 0 {
				from = e.Seq
			}
			if e.ID == id && e.Err == nil {
				events = append(events, e)
			}
		}
		if len(page) < eventPage {
			break
		}
	}
	if len(events) == 0 {
		_, err = m.store.Task(ctx, id)
	}
	return events, from, err
}

// eventPage is how many events are read in one call.
const eventPage = 1000

// eventReader reads the stream of events, page by page.
type eventReader struct {
	m     *Manager
	after int64 // the event that was read last, 0 for none
	page  []task.Event
	gap   *GapError
}

// look reads what comes after the last event, and that one too: only where it is still
// there nothing is missing behind it. The numbers could not tell, as they have gaps.
func (r *eventReader) look(ctx context.Context) (more bool, err error) {
	r.page, r.gap = nil, nil
	found, err := r.m.store.Events(ctx, r.after, eventPage)
	if err != nil {
		return false, err
	}
	if r.after > 0 && (len(found) == 0 || found[0].Seq != r.after) {
		_, newest, err := r.m.store.EventSpan(ctx)
		if err != nil {
			return false, err
		}
		r.gap = &GapError{After: r.after, Newest: newest}
		r.after = newest
		return false, nil
	}
	r.page = slices.DeleteFunc(found, func(e task.Event) bool { return e.Seq <= r.after })
	if len(r.page) > 0 {
		r.after = r.page[len(r.page)-1].Seq
	}
	return len(found) == eventPage, nil
}

// tell gives what was read; it reports whether more is wanted.
func (r *eventReader) tell(yield func(task.Event, error) bool) bool {
	if r.gap != nil && !yield(task.Event{}, r.gap) {
		return false
	}
	for _, e := range r.page {
		if !yield(e, nil) {
			return false
		}
	}
	return true
}
