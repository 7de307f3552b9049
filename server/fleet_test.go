package server

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// verdict is how a round ends.
type verdict struct {
	class statemachine.Class // empty: it succeeds
	exit  string
}

var (
	good = verdict{}
	bad  = verdict{class: statemachine.ClassProgram, exit: "1"}
)

// host is a node with one worker, as Redis sees it.
type host struct {
	node    string
	slots   int
	st      *store.Store
	session fleet.Session
	held    []tasks.Claimed
	took    int
}

func join(t *testing.T, sp *storetest.Space, node string, slots int) *host {
	t.Helper()
	r := registration("w-"+node, conn.NewToken())
	r.Node = node
	reg, err := sp.Store.Register(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return &host{node: node, slots: slots, st: sp.Store, session: reg.Session}
}

// claim fills the free slots as far as the host may, and returns the reply.
func (h *host) claim(t *testing.T) tasks.ClaimReply {
	t.Helper()
	if len(h.held) == h.slots {
		return tasks.ClaimReply{}
	}
	r, err := h.st.Claim(t.Context(), tasks.ClaimRequest{
		Worker: h.session.Name, Incarnation: h.session.Incarnation, Request: conn.NewToken(), Node: h.node,
		Candidates: storetest.Free(task.Bucket{}), Max: h.slots - len(h.held), MaxThreads: task.Unlimited,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.took += len(r.Tasks)
	h.held = append(h.held, r.Tasks...)
	return r
}

// end reports the oldest round of the host, as a worker does.
func (h *host) end(t *testing.T, v verdict) {
	t.Helper()
	h.close(t, statemachine.Report, v)
}

// back hands the oldest round back.
func (h *host) back(t *testing.T) {
	t.Helper()
	h.close(t, statemachine.HandBack, good)
}

func (h *host) close(t *testing.T, event statemachine.Event, v verdict) {
	t.Helper()
	c := h.held[0]
	h.held = h.held[1:]
	m, err := statemachine.Decide(&c.Task, statemachine.Occurrence{
		Event: event, Actor: statemachine.Worker, Claim: c.Task.Current.Claim, Round: c.Task.Round, Failed: v != good,
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	o := tasks.Commit{Move: m, Writer: h.session.Name, Bucket: c.Bucket}
	if event == statemachine.Report {
		o.Node = tasks.NodeGood
		field := func(name string) string { return statemachine.RoundField(c.Task.Round, name) }
		o.Fields = []string{field("output"), "", field("error"), ""}
		if v != good {
			o.Node = tasks.NodeBad
			o.Fields = []string{field("output"), "", field("error"), "it failed", field("class"), string(v.class)}
		}
		if v.exit != "" {
			o.Fields = append(o.Fields, field("exit_code"), v.exit)
		}
		if v.class == statemachine.ClassInfrastructure {
			o.Node = ""
		}
	}
	out, err := h.st.Apply(t.Context(), o)
	if err != nil || out[0].Result != statemachine.Moved {
		t.Fatalf("%s of task %d on %s: %+v, %v", event, c.Task.ID, h.node, out, err)
	}
}

// farm is some hosts that claim and report in steps of a second.
type farm struct {
	sp      *storetest.Space
	now     float64
	hosts   []*host
	outcome func(node string, task *tasks.Claimed) verdict
}

// newFleet has nodes n0, n1 ... with the same number of slots; n0 fails everything.
func newFleet(t *testing.T, sp *storetest.Space, mode string, nodes, slots int) *farm {
	t.Helper()
	sp.SetClock(t, at(0))
	if err := sp.Store.PublishQuarantine(t.Context(), mode); err != nil {
		t.Fatal(err)
	}
	f := &farm{sp: sp, outcome: func(node string, _ *tasks.Claimed) verdict {
		if node == "n0" {
			return bad
		}
		return good
	}}
	for i := range nodes {
		f.hosts = append(f.hosts, join(t, sp, fmt.Sprint("n", i), slots))
	}
	return f
}

// advance sets the clock forward.
func (f *farm) advance(t *testing.T, seconds float64) {
	t.Helper()
	f.now += seconds
	f.sp.SetClock(t, at(f.now))
}

// silence lets time pass in which only these hosts say anything, and the server
// judge the others.
func (f *farm) silence(t *testing.T, s *Server, seconds float64, alive ...*host) {
	t.Helper()
	f.advance(t, seconds)
	for _, h := range alive {
		beat := registrant{store: h.st, session: h.session}
		beat.renew(t)
	}
	steadied(t, s)
}

// step lets every host claim and report, then the servers judge.
func (f *farm) step(t *testing.T, servers ...*Server) (claimed int) {
	t.Helper()
	for _, h := range f.hosts {
		claimed += len(h.claim(t).Tasks)
	}
	for _, h := range f.hosts {
		claimed += f.work(t, h)
	}
	for _, s := range servers {
		pass(t, s)
	}
	f.advance(t, 1)
	return claimed
}

// work ends what the host holds. A failure is quick: its slot has the next task
// before anybody has judged.
func (f *farm) work(t *testing.T, h *host) (claimed int) {
	t.Helper()
	for range 3 * h.slots {
		if len(h.held) == 0 {
			return claimed
		}
		v := f.outcome(h.node, &h.held[0])
		if h.end(t, v); v != good {
			claimed += len(h.claim(t).Tasks)
		}
	}
	for len(h.held) > 0 {
		h.end(t, f.outcome(h.node, &h.held[0]))
	}
	return claimed
}

// finish makes steps until no task waits, up to a maximum.
func (f *farm) finish(t *testing.T, steps int, servers ...*Server) {
	t.Helper()
	for range steps {
		f.step(t, servers...)
		if counts := f.counts(t); counts[statemachine.Open]+counts[statemachine.Running]+counts[statemachine.Executed] == 0 {
			return
		}
	}
	t.Fatalf("after %d steps there is work left: %v", steps, f.counts(t))
}

func (f *farm) counts(t *testing.T) map[statemachine.State]int64 {
	t.Helper()
	counts, err := f.sp.Store.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// record is what Redis holds about a node.
func (f *farm) record(t *testing.T, node string) fleet.Suspect {
	t.Helper()
	nodes, err := f.sp.Store.SuspectNodes(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	return nodes[0]
}

// quarantine gets n0 quarantined: the others pass what it fails.
func (f *farm) quarantine(t *testing.T, s *Server) {
	t.Helper()
	for range 20 {
		if f.step(t, s); !f.record(t, "n0").Quarantined.IsZero() {
			return
		}
	}
	t.Fatalf("n0 is not quarantined: %+v", f.record(t, "n0"))
}

func quarantine(mode string) func(*options) {
	return func(o *options) { o.Quarantine, o.WorkerTimeout = mode, 24*time.Hour }
}

// judging is a server that does not run and looks at the nodes in every pass, with
// further settings of [server].
func judging(t *testing.T, sp *storetest.Space, mode string, further ...string) (*Server, *logs) {
	t.Helper()
	long := func(o *options) { o.WorkerTimeout = 24 * time.Hour }
	s, l := newServer(t, sp, long, setting(t, append(further, "quarantine="+mode)...))
	s.nodes.every = 0
	return s, l
}

func modes() []string {
	return []string{config.QuarantineOff, config.QuarantineWarn, config.QuarantineOn}
}

func text(n int) string { return strconv.Itoa(n) }
