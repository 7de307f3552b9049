// Package blame says who is to blame for failures: the node they happened on,
// or the program. It has no clock and no I/O: the caller counts what
// happens and acts on the verdict. docs/QUARANTINE.md tells the rules to
// operators, docs/decisions/0013-quarantine.md why they are as they are.
//
// # What is counted
//
// A round is counted when it is settled: as a success or as a failure of any
// class but infrastructure. Rounds that overran, were lost or handed back are
// not counted. A node's run is what failed on it since its last success, of any
// program; one success ends it for all programs.
package blame

import "time"

// Thresholds of Judge.
const (
	// MinRun is the fewest failures in a row that set a node aside, or keep it
	// from being forgiven where nobody else is known to fail.
	MinRun = 3
	// Accident is the chance below which a run of fresh failures is no accident.
	Accident = 1e-6
	// Doubt is the chance from which a run is nothing special.
	Doubt = 1e-3
	// Shown is how many failures of a program on other nodes show that it fails
	// elsewhere as well.
	Shown = 3
)

// Verdict is what Judge says of a node.
type Verdict string

// The verdicts.
const (
	// Forgive: the node is not to blame.
	Forgive Verdict = "forgive"
	// Suspect: too little is known, as others have hardly run what it fails.
	Suspect Verdict = "suspect"
	// Quarantine: the node fails what others pass.
	Quarantine Verdict = "quarantine"
)

// Judge says whether the node so named is to blame for its run. The evidence has
// each program it has run within Window, or that is part of its run. alive is
// the number of live nodes that are not quarantined, this one included whatever it
// is: where there is no other node it is forgiven, as nobody could do its work.
func Judge(name string, n Node, evidence []Evidence, alive int) Verdict {
	if n.Run <= 0 || alive < 2 {
		return Forgive
	}
	w := weigh(name, n.Running, evidence)
	switch {
	case n.Run >= MinRun && w.accident < Accident:
		return Quarantine
	case w.chance < Doubt || w.unshown >= MinRun:
		return Suspect
	default:
		return Forgive
	}
}

// weights is what the evidence comes to for one node.
type weights struct {
	// accident is the chance of the fresh failures, by how other nodes do now;
	// chance that of all failures, by how they did within Window.
	accident, chance float64
	// unshown counts failures of programs not known to fail elsewhere.
	unshown int
}

func weigh(node string, running int, evidence []Evidence) weights {
	w := weights{accident: 1, chance: 1}
	passes := passesAny(node, evidence)
	fresh, run := 0, 0
	for _, e := range evidence {
		r, others := e[node], e.elsewhere(node)
		if !others.empty() {
			fresh, run = fresh+r.Fresh, run+r.Run
			w.accident *= e.elsewhereNow(node).chance(r.Fresh)
			w.chance *= others.chance(r.Run)
		}
		// A program that only a node in good order runs is to blame itself.
		if others.bad < Shown && (!others.empty() || !passes) {
			w.unshown += r.Run
		}
	}
	w.accident *= ways(fresh, running)
	w.chance *= ways(run, running)
	return w
}

// ways is the number of ways to choose failed of failed+running rounds. Failures
// are often quicker than successes: the first rounds to end on a sound node may well
// be a run of failures, while those that will pass still run. With this factor the
// chance is that of so many failures among all rounds begun.
func ways(failed, running int) float64 {
	n := 1.0
	for i := range running {
		n *= float64(failed+1+i) / float64(1+i)
	}
	return n
}

// passesAny: the node has passed something within Window.
func passesAny(node string, evidence []Evidence) bool {
	for _, e := range evidence {
		if e[node].Good > 0 {
			return true
		}
	}
	return false
}

const (
	// GateRun is the run from which on a node claims nothing until it has been
	// judged. With s slots it so takes at most GateRun-1+s tasks before.
	GateRun = 5
	// SuspectTrial is the pause before each single task that a suspect at the
	// gate may try.
	SuspectTrial = 10 * time.Second
	// MaxTrial is the longest pause between two probes, if the first one is not
	// longer.
	MaxTrial = time.Hour
)

// Gated says whether the node may claim nothing but trials: single tasks, one at
// a time.
func (n Node) Gated() bool { return n.Quarantined || n.Run >= GateRun }

// NextTrial is the pause before the next probe of a quarantined node after a number
// of failed ones: first, then each twice as long as the one before, up to
// MaxTrial. It is 0 if the first pause is.
func NextTrial(trials int, first time.Duration) time.Duration {
	most := max(first, MaxTrial)
	for pause := first; pause > 0; pause *= 2 {
		if trials--; trials < 0 {
			return pause
		}
		if pause > most/2 {
			return most
		}
	}
	return 0
}

// Thresholds of Excuse.
const (
	// MostPass is the rate of failure elsewhere up to which others pass a
	// program more often than not.
	MostPass = 0.5
	// NearlyAllPass is the rate up to which failures in a row are odd also on a
	// node that has passed the program.
	NearlyAllPass = 0.2
	// Opinions is how many other nodes must have failed it as well before a
	// failure is charged; fewer where there are not as many.
	Opinions = 2
	// MostDoubts is how many failures of a program within Window a node is
	// excused while too few others have tried it, as perhaps they never will.
	MostDoubts = 100
)

// Failure is a failed round of a task.
type Failure struct {
	// Node is where it ran.
	Node string
	// Others is on how many other nodes the same task has failed before.
	Others int
}

// Excuse says whether a failure is not to be charged to the task, as the node is
// to blame, or may be and the task deserves a second opinion. The evidence is
// that of the task's program, and counts this failure already; n is the node,
// and alive as for Judge. An excuse costs one more round, a wrong charge the
// task, so in doubt it excuses.
func Excuse(f Failure, e Evidence, n Node, alive int) bool {
	here := e[f.Node]
	switch {
	case n.Quarantined:
		return true
	case alive < 2:
		return false
	case Judge(f.Node, Node{Run: here.Run, Running: n.Running}, []Evidence{e}, alive) == Quarantine:
		return true
	case f.Others >= needed(alive):
		return false
	case here.Good > 0:
		return here.Run > 1 && e.elsewhere(f.Node).rate() <= NearlyAllPass
	default:
		return undecided(f.Node, e, alive)
	}
}

// undecided: the node has not passed the program, and others pass it, or have
// not yet said whether they do.
func undecided(node string, e Evidence, alive int) bool {
	if s := e.elsewhere(node); s.good > 0 && s.rate() <= MostPass {
		return true
	}
	return e.failing(node) < needed(alive) && e[node].Bad <= MostDoubts
}

// needed is how many opinions of other nodes there must be.
func needed(alive int) int { return min(Opinions, alive-1) }

// Window is how far back Good and Bad are counted.
const Window = time.Hour

// Record is what is known of one program on one node.
type Record struct {
	// Good and Bad are the successes and failures within Window.
	Good, Bad int
	// Run is how many rounds of the program failed here since the last success
	// of anything on the node. The runs of all programs make the node's run.
	Run int
	// Fresh is how many of Run were the first failure of their task, on any
	// node. The others tell as much of their task as of the node: else one task
	// that fails wherever it runs would set one node aside after the other.
	Fresh int
}

// Evidence is what is known of one program, by node.
type Evidence map[string]Record

// Node is what is known of a node as such.
type Node struct {
	// Run is how many rounds failed on it since its last success, or since it
	// was last forgiven.
	Run int
	// Running is how many rounds run on it now.
	Running int
	// Quarantined: it is quarantined.
	Quarantined bool
}

// score counts outcomes.
type score struct{ good, bad int }

func (s score) empty() bool { return s.good+s.bad == 0 }

// elsewhere adds up the program's outcomes within Window on all nodes but node.
func (e Evidence) elsewhere(node string) (s score) {
	for name, r := range e {
		if name != node {
			s.good += r.Good
			s.bad += r.Bad
		}
	}
	return s
}

// elsewhereNow is elsewhere, but a node that is in a run itself counts by that
// run alone: what it passed before says nothing of now. So a fault that all
// nodes share, such as a file server that is down, is not taken for the fault
// of each.
func (e Evidence) elsewhereNow(node string) (s score) {
	for name, r := range e {
		switch {
		case name == node:
		case r.Run > 0:
			s.bad += r.Run
		default:
			s.good += r.Good
			s.bad += r.Bad
		}
	}
	return s
}

// failing is how many other nodes have failed the program within Window.
func (e Evidence) failing(node string) (n int) {
	for name, r := range e {
		if name != node && r.Bad > 0 {
			n++
		}
	}
	return n
}

// rate is the smoothed rate of failure: a half if nothing is known.
func (s score) rate() float64 { return float64(s.bad+1) / float64(s.good+s.bad+2) }

// chance is how likely it is that the next run outcomes are failures, after
// these. It is Laplace's rule of succession, applied run times; unlike rate to
// the power of run it does not take a rate for certain that a few outcomes
// suggest.
func (s score) chance(run int) float64 {
	p := 1.0
	for i := range run {
		p *= float64(s.bad+1+i) / float64(s.good+s.bad+2+i)
	}
	return p
}
