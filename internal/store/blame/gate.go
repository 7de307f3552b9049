package blame

import "time"

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

// NextTrial is the pause before the next probe of a node that is set aside and
// has failed so many: first, then each twice as long as the one before, up to
// MaxTrial. Without a first pause there is none.
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
