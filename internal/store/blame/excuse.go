package blame

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
	here := e.Nodes[f.Node]
	switch {
	case n.Quarantined:
		return true
	case alive < 2:
		return false
	case Judge(f.Node, Node{Run: here.Run, Running: n.Running}, []Evidence{e}, alive) == SetAside:
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
	return e.failing(node) < needed(alive) && e.Nodes[node].Bad <= MostDoubts
}

// needed is how many opinions of other nodes there must be.
func needed(alive int) int { return min(Opinions, alive-1) }
