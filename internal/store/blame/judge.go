package blame

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
type Verdict int

// The verdicts.
const (
	// Forgive: the node is not to blame.
	Forgive Verdict = iota
	// Suspect: too little is known, as others have hardly run what it fails.
	Suspect
	// SetAside: the node fails what others pass.
	SetAside
)

// String names the verdict: forgive, suspect or set aside.
func (v Verdict) String() string {
	switch v {
	case Forgive:
		return "forgive"
	case Suspect:
		return "suspect"
	case SetAside:
		return "set aside"
	default:
		return "unknown verdict"
	}
}

// Judge says whether the node so named is to blame for its run. The evidence has
// each program it has run within Window, or that is part of its run. alive is
// the number of live nodes that are not set aside, this one included whatever it
// is: where there is no other node it is forgiven, as nobody could do its work.
func Judge(name string, n Node, evidence []Evidence, alive int) Verdict {
	if n.Run <= 0 || alive < 2 {
		return Forgive
	}
	w := weigh(name, n.Running, evidence)
	switch {
	case n.Run >= MinRun && w.accident < Accident:
		return SetAside
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
		r, others := e.Nodes[node], e.elsewhere(node)
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

// ways is in how many ways failed of failed+running rounds can be those that
// fail. Failures are often quicker than successes: what ends first on a node in
// order may well be a run of failures, while what will pass still runs. With
// the factor the chance is one of failing so many of all that was begun.
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
		if e.Nodes[node].Good > 0 {
			return true
		}
	}
	return false
}
