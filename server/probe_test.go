package server

import (
	"testing"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// aside is a fleet whose n0 was quarantined just now, with work waiting.
func aside(t *testing.T, further ...string) (*farm, *Server, *logs) {
	t.Helper()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOn, 3, 2)
	openMany(t, sp, 200)
	s, l := judging(t, sp, config.QuarantineOn, further...)
	f.quarantine(t, s)
	return f, s, l
}

// mayClaim checks how many tasks n0 gets now.
func (f *farm) mayClaim(t *testing.T, want int, when string) {
	t.Helper()
	if r := f.hosts[0].claim(t); len(r.Tasks) != want {
		t.Fatalf("%s n0 claimed %d tasks, want %d: %+v", when, len(r.Tasks), want, f.record(t, "n0"))
	}
}

func (f *farm) checkTrials(t *testing.T, trials int, pause float64) {
	t.Helper()
	n := f.record(t, "n0")
	want := at(f.now + pause)
	if n.Trials != trials || task.Stamp(n.NextTrial) != want || n.Quarantined.IsZero() {
		t.Fatalf("%d trials, next at %v s: want %d at %v s; %+v", n.Trials, (task.Stamp(n.NextTrial)-epoch)/1e6, trials, f.now+pause, n)
	}
}

// One task is tried when its time has come, and no other beside it. It fails:
// the next pause is twice as long. It succeeds: the node is released.
func TestProbe(t *testing.T) {
	t.Parallel()
	f, s, l := aside(t)
	f.mayClaim(t, 0, "quarantined")
	f.advance(t, 58)
	if r := f.hosts[0].claim(t); len(r.Tasks) != 0 || r.Next != task.Stamp(f.record(t, "n0").NextTrial) {
		t.Errorf("before its time: %+v", r)
	}
	f.advance(t, 1)
	f.mayClaim(t, 1, "after 60 s")
	f.mayClaim(t, 0, "beside the probe")
	pass(t, s)
	f.mayClaim(t, 0, "after a pass")
	f.hosts[0].end(t, bad)
	pass(t, s)
	f.checkTrials(t, 1, 120)
	f.advance(t, 119)
	f.mayClaim(t, 0, "119 s after the first probe")
	f.advance(t, 1)
	f.mayClaim(t, 1, "120 s after the first probe")
	f.hosts[0].end(t, good)
	f.mayClaim(t, 0, "before the server has looked")
	pass(t, s)
	if n := f.record(t, "n0"); !n.Quarantined.IsZero() || n.Trials != 0 || n.Run != 0 || !n.NextTrial.IsZero() || n.Reason != "" {
		t.Errorf("not released: %+v", n)
	}
	if n := times([]*logs{l}, `"level":"INFO","msg":"node n0 is out of quarantine: its probe succeeded","node":"n0","trials":1}`); n != 1 {
		t.Errorf("the release was said %d times\n%s", n, l)
	}
	f.mayClaim(t, 2, "released")
}

// The first pause is the one that was set.
func TestProbeAfterItsPause(t *testing.T) {
	t.Parallel()
	f, _, _ := aside(t, "quarantine_probe=600")
	f.advance(t, 500)
	f.mayClaim(t, 0, "500 s after it was quarantined")
	f.advance(t, 100)
	f.mayClaim(t, 1, "600 s after it was quarantined")
}

// A probe that says nothing of the node is made up for, and not counted.
func TestProbeWithoutAWord(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *farm, *Server){
		"handed back": func(t *testing.T, f *farm, _ *Server) {
			t.Helper()
			f.hosts[0].back(t)
		},
		"fault of the infrastructure": func(t *testing.T, f *farm, _ *Server) {
			t.Helper()
			f.hosts[0].end(t, verdict{class: statemachine.ClassInfrastructure})
		},
		"lost": func(t *testing.T, f *farm, s *Server) {
			t.Helper()
			f.silence(t, s, 100, f.hosts[1:]...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s, l := aside(t)
			f.advance(t, 60)
			f.mayClaim(t, 1, "after 60 s")
			end(t, f, s)
			pass(t, s) // may take the round back
			pass(t, s)
			f.checkTrials(t, 0, 60)
			if n := times([]*logs{l}, "n0 is out of quarantine"); n != 0 {
				t.Errorf("released\n%s", l)
			}
		})
	}
}

// Rounds that were under way when the node was quarantined neither release it nor
// count as probes, and do not keep it from trying.
func TestOldRoundsAreNoProbes(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOn, 3, 8)
	openMany(t, sp, 300)
	s, l := judging(t, sp, config.QuarantineOn)
	n0 := f.hosts[0]
	n0.claim(t)
	for _, h := range f.hosts[1:] {
		for range 5 {
			for h.claim(t); len(h.held) > 0; {
				h.end(t, good)
			}
		}
	}
	for range 6 {
		n0.end(t, bad)
	}
	pass(t, s)
	f.checkTrials(t, 0, 60)
	n0.end(t, good)
	pass(t, s)
	f.checkTrials(t, 0, 60)
	f.mayClaim(t, 0, "after the success of an old round")
	f.advance(t, 60)
	f.mayClaim(t, 1, "beside an old round")
	n0.end(t, bad) // the old one: held in order
	pass(t, s)
	if n := f.record(t, "n0"); n.Trials != 0 || !n.NextTrial.IsZero() {
		t.Errorf("an old round counted as a probe: %+v", n)
	}
	n0.end(t, good)
	pass(t, s)
	if n := f.record(t, "n0"); !n.Quarantined.IsZero() {
		t.Errorf("the probe did not release: %+v\n%s", n, l)
	}
}

// A suspect at the gate tries a task every ten seconds; one that succeeds opens
// the gate.
func TestSuspect(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOn, 3, 2)
	openMany(t, sp, 50)
	s, l := judging(t, sp, config.QuarantineOn)
	n0 := f.hosts[0]
	for n0.took < 6 { // nobody else has run anything
		for n0.claim(t); len(n0.held) > 0; {
			n0.end(t, bad)
		}
		pass(t, s)
	}
	if n := f.record(t, "n0"); !n.Quarantined.IsZero() || !n.NextTrial.Equal(task.Moment(at(f.now+10))) {
		t.Fatalf("no suspect: %+v", n)
	}
	f.mayClaim(t, 0, "at the gate")
	for range 2 {
		f.advance(t, 10)
		f.mayClaim(t, 1, "after 10 s")
		f.mayClaim(t, 0, "beside the trial")
		pass(t, s)
		n0.end(t, bad)
		pass(t, s)
		f.mayClaim(t, 0, "after the trial")
	}
	if n := times([]*logs{l}, "node n0 is suspect"); n != 1 {
		t.Errorf("said %d times\n%s", n, l)
	}
	f.advance(t, 10)
	f.mayClaim(t, 1, "after 10 s")
	n0.end(t, good)
	f.mayClaim(t, 2, "after a success")
	pass(t, s)
	if names, err := sp.Store.Suspects(t.Context()); err != nil || len(names) != 0 {
		t.Errorf("suspects %v, %v", names, err)
	}
}
