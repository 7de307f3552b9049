package audit

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
)

// TestHistoryOfAll: how far the events go back, also once the first are gone.
func TestHistoryOfAll(t *testing.T) {
	t.Parallel()
	ns, s, _ := world(t)
	r, err := verify(t, s)
	if err != nil || !r.OK() || r.History.From != 1 || r.History.Tasks != 13 || r.History.Whole != 13 || r.History.To < r.History.Events {
		t.Errorf("%+v, %v", r, err)
	}
	redistest.Shared(t).Do(t, "XTRIM", ns+":events", "MINID", "9-0")
	r, err = verify(t, s)
	if err != nil || !r.OK() || r.History.From < 9 || r.History.Whole >= 13 {
		t.Errorf("with the first events gone: %+v, %v", r, err)
	}
	if err := s.PublishEvents(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	opened(t, s, 1)
	if r, err = verify(t, s); err != nil || !r.OK() || r.History != (History{}) {
		t.Errorf("without events: %+v, %v", r, err)
	}
}

// TestMissingEvent: a step that is not there leaves the next one without a beginning, and
// the last one the task somewhere else.
func TestMissingEvent(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]int{"in the middle": 2, "the last": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := redistest.Namespace(t)
			s := worktest.Open(t, ns)
			opened(t, s, 1)
			worktest.Drain(t, s, worktest.Echo)
			all, err := s.Events(t.Context(), 0, 10)
			if err != nil || len(all) != 4 {
				t.Fatal(all, err)
			}
			i := drop
			if drop == 0 {
				i = 3
			}
			redistest.Shared(t).Do(t, "XDEL", ns+":events", strconv.FormatInt(all[i].Seq, 10))
			r, err := verify(t, s)
			if err != nil || len(r.Violations) != 1 || r.Violations[0].Kind != Path || r.Violations[0].ID != 1 {
				t.Errorf("%+v, %v", r.Violations, err)
			}
		})
	}
}

// TestOlderRelease: programs of a release that recorded no events leave steps out, which is
// no violation; what is no step at all is one.
func TestOlderRelease(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	opened(t, s, 2)
	worktest.Drain(t, s, worktest.Echo)
	all, err := s.Events(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	srv := redistest.Shared(t)
	srv.Do(t, "HSET", ns+":task:1", "0:claim", "TOKEN.1")
	for _, e := range all {
		if e.ID == 1 && (e.Event == statemachine.Report || e.Event == statemachine.Settle) {
			srv.Do(t, "XDEL", ns+":events", strconv.FormatInt(e.Seq, 10))
		}
	}
	r, err := verify(t, s)
	if err != nil || !r.OK() || len(r.Notes) != 1 || !strings.Contains(r.Notes[0].Text, "older release") {
		t.Errorf("%+v, %v", r, err)
	}
	srv.Do(t, "XADD", ns+":events", "9000-0", "id", "2", "round", "0", "from", "succeeded", "to", "open", "event", "settle", "actor", "server")
	if r, err = verify(t, s); err != nil || r.OK() {
		t.Errorf("%+v, %v, want an illegal step", r, err)
	}
}

// TestClockSetBack: stamps in the wrong order are a note where a clock may have been set
// back.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	opened(t, s, 1)
	worktest.Drain(t, s, worktest.Echo)
	srv := redistest.Shared(t)
	srv.Do(t, "HSET", ns+":task:1", "0:executed", "9999999999", "0:succeeded", "9999999998")
	if r, err := verify(t, s); err != nil || len(r.Violations) != 1 || r.Violations[0].Kind != Order {
		t.Errorf("%+v, %v, want an order that cannot be", r.Violations, err)
	}
	srv.Do(t, "XADD", ns+":events", "9000-0", "at", "1", "id", "1", "round", "0", "from", "succeeded", "to", "archived",
		"event", "archive", "actor", "manager")
	srv.Do(t, "ZREM", ns+":succeeded", "1")
	srv.Do(t, "ZADD", ns+":archived", "1", "1")
	srv.Do(t, "HSET", ns+":task:1", "0:archived", "9999999999", "state", "archived", "outcome", "succeeded")
	r, err := verify(t, s)
	if err != nil || !r.OK() || len(r.Notes) != 1 || r.Notes[0].Kind != Order {
		t.Errorf("%+v, %v, want a note", r, err)
	}
}

// TestDropBroken: events that Redis dropped while the others were read leave no gap.
func TestDropBroken(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	opened(t, s, 2)
	opened(t, s, 2)
	a := newAuditor(s)
	if err := a.extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	redistest.Shared(t).Do(t, "XTRIM", ns+":events", "MINID", "3-0")
	if err := a.dropBroken(t.Context()); err != nil || len(a.history.events) != 2 || a.history.events[0].Seq != 3 {
		t.Errorf("%+v, %v", a.history.events, err)
	}
	if !a.history.since(4) || a.history.since(3) || a.history.known[2] {
		t.Errorf("%+v", a.history)
	}
}
