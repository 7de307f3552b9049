package chaos

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A deck deals each card as often as it is in it, in an order that the seed says.
func TestDeck(t *testing.T) {
	t.Parallel()
	deal := func(seed uint64) []class {
		d := deck{rnd: rand.New(rand.NewPCG(seed, 0)), cards: []card{{class: workerKill}, {class: workerKill}, {class: diskFull}, {class: redisKill}}}
		var dealt []class
		for range 400 {
			dealt = append(dealt, d.draw().class)
		}
		return dealt
	}
	first := deal(1)
	count := map[class]int{}
	for _, c := range first {
		count[c]++
	}
	if count[workerKill] != 200 || count[diskFull] != 100 || count[redisKill] != 100 {
		t.Errorf("dealt %v", count)
	}
	if !slices.Equal(first, deal(1)) || slices.Equal(first, deal(2)) {
		t.Error("the order does not follow from the seed")
	}
}

// A card that cannot be played now is not lost.
func TestCardComesAgain(t *testing.T) {
	t.Parallel()
	tr := &trial{report: newReport(settings{})}
	can := false
	d := &deck{rnd: rand.New(rand.NewPCG(1, 0)), cards: []card{{redisForgets, func(*testing.T) bool { return can }}}}
	tr.strike(t, d)
	can, d.cards = true, []card{{redisKill, func(*testing.T) bool { return true }}}
	tr.strike(t, d)
	if n := tr.report.Faults; n[redisForgets] != 1 || n[redisKill] != 0 {
		t.Errorf("struck: %v", n)
	}
}

// Nothing is dealt before its time, and not at the very start.
func TestDeckWaits(t *testing.T) {
	t.Parallel()
	d := deck{rnd: rand.New(rand.NewPCG(1, 0)), cards: []card{{}}, min: second, max: 2 * second}
	now := time.Now()
	if d.due(now) || d.due(now.Add(second-1)) {
		t.Error("dealt too early")
	}
	if !d.due(now.Add(2*second)) || d.due(now.Add(2*second)) {
		t.Error("not dealt once when it was time")
	}
}

// A report counts, and says how to see it again.
func TestReport(t *testing.T) {
	t.Parallel()
	r := newReport(settings{seed: 7, duration: time.Minute})
	r.recovered(diskFull, []time.Duration{4 * second, second, 2 * second})
	r.violate(lost, "task %d", 3)
	if got := r.Recovery[diskFull]; got != (recovery{Times: 3, Median: 2, Max: 4}) {
		t.Errorf("%+v", got)
	}
	if r.Broken[lost] != 1 || !slices.Equal(r.Violations, []string{"lost: task 3"}) {
		t.Errorf("%+v", r)
	}
}
