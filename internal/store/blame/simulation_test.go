package blame

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A simulated round takes half a second to one and a half.
func aSecond(r *rand.Rand) time.Duration {
	return time.Second/2 + time.Duration(r.Int64N(int64(time.Second)))
}

// by chance rounds fail at the rate, through their task.
func byChance(rate float64) func(*rand.Rand, time.Duration, int, int) (cause, time.Duration) {
	return func(r *rand.Rand, _ time.Duration, _, _ int) (cause, time.Duration) {
		if r.Float64() < rate {
			return byTask, aSecond(r)
		}
		return passes, aSecond(r)
	}
}

// bad lets the first so many nodes fail everything from the time on, within
// took; the others fail by chance.
func bad(nodes int, from, took time.Duration, rate float64) func(*rand.Rand, time.Duration, int, int) (cause, time.Duration) {
	return func(r *rand.Rand, now time.Duration, node, id int) (cause, time.Duration) {
		if node < nodes && now >= from {
			return byNode, took
		}
		return byChance(rate)(r, now, node, id)
	}
}

// the same program for all.
func one(int) string { return "p" }

// every fifth task is of a program of its own.
func everyFifth(id int) string {
	if id%5 == 0 {
		return "broken"
	}
	return "p"
}

func thousand() plan {
	return plan{nodes: 5, slots: 4, tasks: 1000, maxFaults: 10, program: one}
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

const seeds = 20

// A node that fails everything takes at most 10 of 1,000 tasks, probes
// included, and costs no task its only try; whether it fails at once or slowly,
// and whether what it failed comes back first or last.
func TestBadNodeTakesTen(t *testing.T) {
	t.Parallel()
	for slots := 1; slots <= 6; slots++ {
		for _, back := range []bool{false, true} {
			for _, took := range []time.Duration{10 * time.Millisecond, time.Second} {
				for seed := range uint64(seeds) {
					p := thousand()
					p.slots, p.back, p.outcome = slots, back, bad(1, 0, took, 0)
					got := simulate(p, seed)
					what := fmt.Sprintf("slots %d, back %v, took %v, seed %d", slots, back, took, seed)
					if got.took[0] > 10 || got.quarantined[0] != 1 {
						t.Errorf("%s: took %d rounds, quarantined %d times", what, got.took[0], got.quarantined[0])
					}
					if got.failed > 0 || sum(got.quarantined[1:]) > 0 {
						t.Errorf("%s: %d tasks failed, healthy nodes quarantined %v", what, got.failed, got.quarantined)
					}
				}
			}
		}
	}
}

// Without the rules the same node takes most of the tasks: the simulation can
// fail.
func TestBadNodeUnjudged(t *testing.T) {
	t.Parallel()
	p := thousand()
	p.off, p.outcome = true, bad(1, 0, 10*time.Millisecond, 0)
	if got := simulate(p, 1); got.wronged < 900 {
		t.Errorf("%d tasks of 1,000 were lost", got.wronged)
	}
}

// Chance on the other nodes delays the verdict, but changes little.
func TestBadNodeAmongChance(t *testing.T) {
	t.Parallel()
	for rate, most := range map[float64]int{0.05: 17, 0.2: 23} {
		wronged, took := 0, 0
		for seed := range uint64(seeds) {
			p := thousand()
			p.slots, p.outcome = 6, bad(1, 0, time.Second, rate)
			got := simulate(p, seed)
			wronged += got.wronged
			took = max(took, got.took[0])
			if sum(got.quarantined[1:]) > 0 {
				t.Errorf("rate %v, seed %d: quarantined %v", rate, seed, got.quarantined)
			}
		}
		if took > most || wronged > seeds {
			t.Errorf("rate %v: took up to %d rounds, %d tasks lost in %d runs", rate, took, wronged, seeds)
		}
	}
}

// A node that breaks while it works has passed the program before: its first
// failure in a row is charged, the others are not. What was begun before may
// still pass and end the row, once for each slot.
func TestNodeBreaksLater(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		p := thousand()
		p.outcome = bad(1, 20*time.Second, 10*time.Millisecond, 0)
		got := simulate(p, seed)
		if got.wronged > p.slots || got.quarantined[0] != 1 || sum(got.quarantined[1:]) > 0 {
			t.Errorf("seed %d: %d tasks lost, quarantined %v", seed, got.wronged, got.quarantined)
		}
	}
}

// Two bad nodes of five, of which each is the other's second opinion.
func TestTwoBadNodes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		p := thousand()
		p.outcome = bad(2, 0, 10*time.Millisecond, 0)
		got := simulate(p, seed)
		if got.failed > 0 || got.quarantined[0] != 1 || got.quarantined[1] != 1 || sum(got.quarantined[2:]) > 0 {
			t.Errorf("seed %d: %d tasks failed, quarantined %v", seed, got.failed, got.quarantined)
		}
	}
}

// A program that fails everywhere sets no node aside, alone or beside one that
// passes, and few of its rounds are excused.
func TestBrokenProgram(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]func(int) string{"alone": one, "beside another": everyFifth} {
		for seed := range uint64(seeds) {
			p := thousand()
			p.program = program
			p.outcome = func(r *rand.Rand, now time.Duration, node, id int) (cause, time.Duration) {
				if name == "alone" || program(id) == "broken" {
					return byTask, 10 * time.Millisecond
				}
				return byChance(0)(r, now, node, id)
			}
			got := simulate(p, seed)
			if sum(got.quarantined) > 0 || got.excused > 60 {
				t.Errorf("%s, seed %d: quarantined %v, %d rounds excused", name, seed, got.quarantined, got.excused)
			}
		}
	}
}

// A bad node and a broken program together: the node is found, the program is
// charged, and no task of the good program is lost.
func TestBadNodeAndBrokenProgram(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		p := thousand()
		p.program = everyFifth
		p.outcome = func(r *rand.Rand, now time.Duration, node, id int) (cause, time.Duration) {
			if everyFifth(id) == "broken" {
				return byTask, aSecond(r)
			}
			return bad(1, 0, 10*time.Millisecond, 0)(r, now, node, id)
		}
		got := simulate(p, seed)
		if got.took[0] > 14 || got.quarantined[0] != 1 || sum(got.quarantined[1:]) > 0 {
			t.Errorf("seed %d: took %d, quarantined %v", seed, got.took[0], got.quarantined)
		}
		if got.wronged > 0 || got.failed != 200 {
			t.Errorf("seed %d: %d tasks failed, %d of them through the node", seed, got.failed, got.wronged)
		}
	}
}

// What all nodes share and fails for a minute, such as a file server, is the
// fault of none for long: most nodes stay, and work goes on at its end.
func TestSharedFault(t *testing.T) {
	t.Parallel()
	asides := 0
	for seed := range uint64(seeds) {
		p := thousand()
		p.outcome = func(r *rand.Rand, now time.Duration, node, id int) (cause, time.Duration) {
			if now > 20*time.Second && now < 80*time.Second {
				return byNode, aSecond(r)
			}
			return byChance(0)(r, now, node, id)
		}
		got := simulate(p, seed)
		asides += sum(got.quarantined)
		if got.wronged > 5*p.nodes || got.end > 4*time.Minute {
			t.Errorf("seed %d: %d tasks lost, end after %v", seed, got.wronged, got.end)
		}
	}
	if asides > seeds {
		t.Errorf("%d nodes quarantined in %d runs of 5", asides, seeds)
	}
}

// Tasks that fail wherever they run, of a program that passes otherwise, must
// not set one node aside after the other: one that is tried again and again,
// and a batch of them.
func TestPoisonedTasks(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 5, 20} {
		asides := 0
		for seed := range uint64(seeds) {
			p := thousand()
			p.outcome = func(r *rand.Rand, now time.Duration, node, id int) (cause, time.Duration) {
				if id >= 500 && id < 500+batch {
					return byTask, 10 * time.Millisecond
				}
				return byChance(0)(r, now, node, id)
			}
			got := simulate(p, seed)
			asides += sum(got.quarantined)
			if got.failed != batch {
				t.Errorf("batch %d, seed %d: %d tasks failed", batch, seed, got.failed)
			}
		}
		if asides > map[int]int{1: 0, 5: 0, 20: seeds}[batch] {
			t.Errorf("batch %d: %d nodes quarantined in %d runs", batch, asides, seeds)
		}
	}
}

// Where failures are quick and successes slow, runs of failures come first, the
// more so on a slow node, though nothing is wrong with it.
func TestQuickFailures(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.02, 0.05, 0.1, 0.2} {
		for seed := range uint64(seeds) {
			p := thousand()
			p.slots, p.tasks = 64, 3000
			p.outcome = func(r *rand.Rand, _ time.Duration, node, _ int) (cause, time.Duration) {
				if r.Float64() < rate {
					return byTask, 10 * time.Millisecond
				}
				if node == 0 {
					return passes, 10 * aSecond(r)
				}
				return passes, aSecond(r)
			}
			if got := simulate(p, seed); sum(got.quarantined) > 0 {
				t.Errorf("rate %v, seed %d: quarantined %v", rate, seed, got.quarantined)
			}
		}
	}
}

// Failures by chance set no node aside: by Accident less than one in a million
// rounds may.
func TestChanceSetsNobodyAside(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9} {
		suspected, rounds := 0, 0
		for seed := range uint64(seeds) {
			p := thousand()
			p.outcome = byChance(rate)
			got := simulate(p, seed)
			rounds += got.rounds
			suspected += sum(got.suspected)
			if sum(got.quarantined) > 0 {
				t.Errorf("rate %v, seed %d: quarantined %v", rate, seed, got.quarantined)
			}
		}
		if suspected*200 > rounds {
			t.Errorf("rate %v: %d passes over suspects in %d rounds", rate, suspected, rounds)
		}
	}
}
