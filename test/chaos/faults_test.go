package chaos

import (
	"math/rand/v2"
	"testing"
	"time"
)

// class is a kind of fault, as the report names it.
type class string

const (
	workerKill    class = "worker killed"
	workerGone    class = "worker gone"
	workerFreeze  class = "worker frozen"
	serverKill    class = "server killed"
	serverFreeze  class = "server frozen"
	managerKill   class = "manager killed"
	managerFreeze class = "manager frozen"
	redisKill     class = "redis killed"
	redisFreeze   class = "redis frozen"
	redisForgets  class = "redis forgets"
	scriptFlush   class = "scripts flushed"
	clockStep     class = "clock stepped"
	diskFull      class = "disk full"
	networkCut    class = "network cut"
	foreignKill   class = "worker over HTTP killed"
	foreignGone   class = "worker over HTTP gone"
	requestCut    class = "request cut"
	answerCut     class = "answer cut"
	requestDelay  class = "request delayed"
	requestTwice  class = "request sent twice"
)

// classes are all, in the order of the report.
var classes = []class{
	workerKill, workerGone, workerFreeze, serverKill, serverFreeze, managerKill, managerFreeze,
	redisKill, redisFreeze, redisForgets, scriptFlush, clockStep, diskFull, networkCut,
	foreignKill, foreignGone, requestCut, answerCut, requestDelay, requestTwice,
}

// longest is how long something is away at most: a worker is found dead, or comes
// back before.
const longest = 3 * lease

// ending is how a fault ends.
type ending struct {
	at   time.Time
	undo func(t *testing.T)
}

// card is a fault in a deck.
type card struct {
	class class
	// strike does the harm; false means that it could not be done now.
	strike func(t *testing.T) bool
}

// deck deals its cards at random, each as often as the others: so no run is
// without one of them.
type deck struct {
	rnd         *rand.Rand
	cards, left []card
	// Between two cards at least min passes, at most max.
	min, max time.Duration
	next     time.Time
}

func (d *deck) draw() card {
	if len(d.left) == 0 {
		d.left = append(d.left, d.cards...)
		d.rnd.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	c := d.left[0]
	d.left = d.left[1:]
	return c
}

// due reports whether it is time for a card, and sets the time of the next one.
func (d *deck) due(now time.Time) bool {
	if now.Before(d.next) {
		return false
	}
	first := d.next.IsZero()
	d.next = now.Add(d.min + time.Duration(d.rnd.Int64N(int64(d.max-d.min))))
	return !first && len(d.cards) > 0
}

// step is how often torment decides what to do.
const step = 20 * time.Millisecond

// torment does harm until the time is over. On a busy machine little happens in that time: then it goes on until nothing is spared, at
// most as long again.
func (tr *trial) torment(t *testing.T) {
	t.Helper()
	decks := []*deck{
		{rnd: tr.rnd, cards: tr.memberCards(), min: 100 * time.Millisecond, max: 500 * time.Millisecond},
		{rnd: tr.rnd, cards: append(tr.redisCards(), tr.placeCards()...), min: 1500 * time.Millisecond, max: 4 * second},
	}
	tick := time.NewTicker(step)
	defer tick.Stop()
	begun := time.Now()
	more := func() bool {
		took := time.Since(begun)
		return took < tr.duration || took < 2*tr.duration && len(tr.spares()) > 0
	}
	for ; more() && t.Context().Err() == nil; <-tick.C {
		tr.undo(t, time.Now())
		tr.tend(t)
		for _, d := range decks {
			if d.due(time.Now()) {
				tr.strike(t, d)
			}
		}
	}
}

// strike deals a card. One that cannot be played now comes again in the same hand.
func (tr *trial) strike(t *testing.T, d *deck) {
	t.Helper()
	c := d.draw()
	if !c.strike(t) {
		d.left = append(d.left, c)
		return
	}
	tr.report.Faults[c.class]++
}

// undo ends the faults whose time has come.
func (tr *trial) undo(t *testing.T, now time.Time) {
	t.Helper()
	var later []ending
	for _, e := range tr.endings {
		if now.Before(e.at) {
			later = append(later, e)
			continue
		}
		e.undo(t)
	}
	tr.endings = later
}

// later plans the end of a fault.
func (tr *trial) later(d time.Duration, undo func(t *testing.T)) {
	tr.endings = append(tr.endings, ending{time.Now().Add(d), undo})
}

// absence is how long something is away.
func (tr *trial) absence(most time.Duration) time.Duration {
	return time.Duration(tr.rnd.Int64N(int64(most)))
}

// calm waits until all faults have ended by themselves, and looks after the members
// until those that gave up meanwhile are back.
func (tr *trial) calm(t *testing.T) {
	t.Helper()
	tr.proxy.calm()
	cameTrue(2*longest, func() bool {
		tr.undo(t, time.Now())
		tr.tend(t)
		return len(tr.endings) == 0
	})
	settled := time.Now().Add(lease)
	cameTrue(2*longest, func() bool {
		tr.tend(t)
		if !tr.fleet.complete() { // and who is let go or started at last may give up yet
			settled = time.Now().Add(lease)
		}
		return time.Now().After(settled)
	})
	tr.calmed = time.Now()
}
