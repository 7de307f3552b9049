package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// someWorkers claim with and without a session.
var someWorkers = []string{"w1", "w2"}

// lease is that of the model, in which no server publishes another.
const lease = fleet.DefaultLease * second

// sessionTwin is a worker of the model.
type sessionTwin struct {
	incarnation int64
	state       task.WorkerState
	identity    string
	// listed and beat are its entry in the list of leases.
	listed bool
	beat   statemachine.Time
	// issued are the sessions there ever were.
	issued []fleet.Session
}

func (s *sessionTwin) holds(incarnation int64) bool {
	return incarnation > 0 && s.incarnation == incarnation && s.state != task.WorkerLost && s.state != task.WorkerStopped
}

func (s *sessionTwin) overdue(now statemachine.Time) bool { return s.listed && now.Sub(s.beat) > lease }

// worker draws one, with what the model knows of it.
func (w *twins) someWorker(rt *rapid.T) (string, *sessionTwin) {
	name := rapid.SampledFrom(someWorkers).Draw(rt, "worker")
	if w.sessions[name] == nil {
		w.sessions[name] = &sessionTwin{}
	}
	return name, w.sessions[name]
}

// someSession draws a session, perhaps one that is over since long.
func (w *twins) someSession(rt *rapid.T) (fleet.Session, *sessionTwin) {
	_, s := w.someWorker(rt)
	if len(s.issued) == 0 {
		rt.Skip("no session yet")
	}
	return rapid.SampledFrom(s.issued).Draw(rt, "session"), s
}

// holding are the ids that run under a worker's sessions.
func (w *twins) holding(name string) []int64 {
	var ids []int64
	for _, id := range w.ids() {
		if t := w.tasks[id]; t.State == statemachine.Running && t.worker == name && t.incarnation > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// seenIDs are the ids of what a worker held, sorted. The last claim comes first, and what is more than its two slots was not begun.
func seenIDs(rt *rapid.T, held []tasks.TaskHeader) []int64 {
	var ids []int64
	for i := range held {
		ids = append(ids, held[i].ID)
		if held[i].Unbegun != (i < len(held)-2) || i > 0 && held[i].Current.Running > held[i-1].Current.Running {
			rt.Fatalf("held, in this order: %+v", held)
		}
	}
	slices.Sort(ids)
	return ids
}

// register comes from the same process again, from another, or from one that
// knows that the holder is dead. What the clock says of the holder is nothing.
func (w *twins) register(rt *rapid.T) {
	name, s := w.someWorker(rt)
	reg := storetest.Registration(name)
	reg.Identity = rapid.SampledFrom([]string{s.identity, w.token("i")}).Draw(rt, "identity")
	if reg.Identity == "" {
		reg.Identity = w.token("i")
	}
	if rapid.Bool().Draw(rt, "replaces") {
		reg.Replaces = s.incarnation
	}
	got, err := w.sp.Store.Register(w.t.Context(), reg)
	taken := s.listed && s.holds(s.incarnation)
	held := w.holding(name)
	switch {
	case taken && reg.Replaces != s.incarnation && reg.Identity != s.identity:
		if !errors.Is(err, conn.ErrNameTaken) {
			rt.Fatalf("registered %+v, error %v, but %s has the name", got, err, name)
		}
	case err != nil:
		rt.Fatal(err)
	case taken && reg.Replaces != s.incarnation:
		if got.Incarnation != s.incarnation {
			rt.Fatalf("registered again as %+v, want incarnation %d", got, s.incarnation)
		}
	case len(held) > 0:
		if ids := seenIDs(rt, got.Former); !slices.Equal(ids, held) {
			rt.Fatalf("former tasks %v, want %v", ids, held)
		}
		s.state = task.WorkerLost
		if !s.listed {
			s.listed, s.beat = true, w.now
		}
	default:
		s.incarnation++
		if got.Incarnation != s.incarnation || len(got.Former) > 0 {
			rt.Fatalf("registered %+v, want incarnation %d", got, s.incarnation)
		}
		s.state, s.identity, s.listed, s.beat = task.WorkerReady, reg.Identity, true, w.now
		s.issued = append(s.issued, got.Session)
	}
}

// agree compares an error about a session with what the model says.
func agree(rt *rapid.T, what string, err error, holds bool) {
	if holds && err != nil || !holds && !errors.Is(err, conn.ErrLeaseLost) {
		rt.Fatalf("%s: error %v; the session holds: %v", what, err, holds)
	}
}

func (w *twins) renew(rt *rapid.T) {
	session, s := w.someSession(rt)
	r, err := w.sp.Store.Renew(w.t.Context(), session, fleet.Heartbeat{State: task.WorkerReady})
	holds := s.holds(session.Incarnation)
	agree(rt, "renew", err, holds)
	if !holds {
		return
	}
	s.listed, s.beat = true, w.now
	stops := slices.DeleteFunc(w.holding(session.Name), func(id int64) bool { return !w.tasks[id].StopAsked })
	slices.Sort(r.Stops)
	if !slices.Equal(r.Stops, stops) {
		rt.Fatalf("%s is to stop %v, the model %v", session.Name, r.Stops, stops)
	}
}

func (w *twins) leave(rt *rapid.T) {
	session, s := w.someSession(rt)
	err := w.sp.Store.Leave(w.t.Context(), session)
	switch {
	case s.incarnation == session.Incarnation && s.state == task.WorkerStopped:
		agree(rt, "leave again", err, true)
	case s.holds(session.Incarnation) && len(w.holding(session.Name)) > 0:
		if !errors.Is(err, conn.ErrHolding) {
			rt.Fatalf("leave: %v, but it holds %v", err, w.holding(session.Name))
		}
	default:
		agree(rt, "leave", err, s.holds(session.Incarnation))
		if err == nil {
			s.state, s.listed = task.WorkerStopped, false
		}
	}
}

// lost is a server's verdict. The tasks are taken back by other steps, or not.
func (w *twins) lost(rt *rapid.T) {
	got, err := w.sp.Store.Lost(w.t.Context(), 100, fleet.Watched{})
	if err != nil {
		rt.Fatal(err)
	}
	found := map[string][]int64{}
	for i := range got.Workers {
		found[got.Workers[i].Name] = seenIDs(rt, got.Workers[i].Tasks)
	}
	next := statemachine.Never
	for _, name := range someWorkers {
		s := w.sessions[name]
		tasks, listed := found[name]
		if want := s != nil && s.overdue(w.now); listed != want || want && !slices.Equal(tasks, w.holding(name)) {
			rt.Fatalf("lost %v, want %s: %v with %v", found, name, want, w.holding(name))
		}
		switch {
		case listed:
			s.state, s.listed = task.WorkerLost, len(tasks) > 0
		case s != nil && s.listed:
			next = min(next, s.beat.Add(lease))
		}
	}
	if got.Next != next || got.Now != w.now {
		rt.Fatalf("the next lease ends at %s, want %s", got.Next.Text(), next.Text())
	}
}

// leasePasses is long enough for every lease to end.
func (w *twins) leasePasses(*rapid.T) {
	w.now = w.now.Add(lease + 1)
	w.sp.SetClock(w.t, w.now)
}

// checkSessions: the registry says what the model says.
func (w *twins) checkSessions(rt *rapid.T) {
	beats := map[string]string{}
	for _, z := range w.members(rt, "lease") {
		beats[fmt.Sprint(z.Member)] = strconv.FormatFloat(z.Score, 'f', 6, 64)
	}
	for name, s := range w.sessions {
		beat, listed := beats[name]
		if want := fmt.Sprintf("%d.%06d", s.beat/1e6, s.beat%1e6); listed != s.listed || listed && beat != want {
			rt.Fatalf("lease of %s at %s (%v), the model: %s (%v)", name, beat, listed, want, s.listed)
		}
		info, _, err := w.sp.Store.Worker(w.t.Context(), name)
		if errors.Is(err, task.ErrNoWorker) && s.incarnation == 0 {
			continue
		}
		if err != nil || info.Incarnation != s.incarnation || info.State != s.state || !slices.Equal(info.Tasks, w.holding(name)) {
			rt.Fatalf("worker %+v, error %v, the model: %+v with %v", info, err, s, w.holding(name))
		}
	}
}
