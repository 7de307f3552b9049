package blame

import "time"

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
type Evidence struct {
	Program string
	Nodes   map[string]Record
}

// Node is what is known of a node as such.
type Node struct {
	// Run is how many rounds failed on it since its last success, or since it
	// was last forgiven.
	Run int
	// Running is how many rounds run on it now.
	Running int
	// Quarantined: it is set aside.
	Quarantined bool
	// Trials is how many probes it has failed since it was set aside.
	Trials int
}

// score counts outcomes.
type score struct{ good, bad int }

func (s score) empty() bool { return s.good+s.bad == 0 }

// elsewhere adds up the program's outcomes within Window on all nodes but node.
func (e Evidence) elsewhere(node string) (s score) {
	for name, r := range e.Nodes {
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
	for name, r := range e.Nodes {
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
	for name, r := range e.Nodes {
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
