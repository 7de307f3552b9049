package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// phase is what a slot does.
type phase int

const (
	idle      phase = iota
	executing       // a program or handler is at work
	lent            // to the task of another slot, which takes several
	reporting       // its result is on the way
	resting         // pausing after a round, as configured
	stuck           // its program or handler does not end
)

// pool hands out the slots of a worker.
type pool struct {
	mu     sync.Mutex
	phases map[*slot]phase
	queues map[*slot]string  // of the task that the slot had last
	lent   map[*slot][]*slot // to the task of a slot
	free   []*slot
	closed bool
	// ahead holds the tasks claimed ahead, the oldest claim first. It is empty while a slot is idle, but for tasks that take several.
	ahead []*assignment
	wait  statemachine.Duration // how long one of them may wait for a slot
	apart int                   // reports for which no slot waits
	// changed is closed at the next change; nil while nobody waits for one.
	changed chan struct{}
}

func newPool(slots []*slot, wait time.Duration) *pool {
	p := &pool{phases: map[*slot]phase{}, queues: map[*slot]string{}, lent: map[*slot][]*slot{}, wait: timing.FromStd(wait)}
	for _, s := range slices.Backward(slots) { // slot 0 is handed out first
		p.phases[s] = idle
		p.free = append(p.free, s)
	}
	return p
}

// take returns an idle slot for a task, or nil if fewer are idle than it takes. The caller has the lock.
func (p *pool) take(a *assignment) *slot {
	if len(p.free) < slotsOf(a.claimed) {
		return nil
	}
	s := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.begin(s, a)
	return s
}

// begin gives a task to a slot, and lends it the other slots that the task takes. The caller has the lock.
func (p *pool) begin(s *slot, a *assignment) {
	p.queues[s] = a.claimed.Bucket.QueueName()
	p.enter(s, executing)
	if n := slotsOf(a.claimed) - 1; n > 0 {
		at := len(p.free) - n
		p.lent[s] = slices.Clone(p.free[at:])
		p.free = p.free[:at]
		for _, other := range p.lent[s] {
			p.phases[other] = lent
		}
	}
}

// keep returns what a slot that has reported goes on with: the task, or the oldest of those claimed before it, in which case the
// task is kept. It returns nil if the pool is closed.
func (p *pool) keep(s *slot, a *assignment) *assignment {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	if first := p.shift(s); first != nil {
		p.ahead = append(p.ahead, a)
		return first
	}
	p.begin(s, a)
	return a
}

// place gives a task to an idle slot, or keeps it, if it may, for the next one. One that takes several slots, which a report makes free, it
// keeps too. Where it does neither, the task is to be handed back, and reported follows.
func (p *pool) place(a *assignment, may bool) (s *slot, kept bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		s = p.take(a)
	}
	switch {
	case s != nil:
		return s, false
	case p.closed || !may && slotsOf(a.claimed) == 1:
		p.apart++
		return nil, false
	}
	p.ahead = append(p.ahead, a)
	return nil, true
}

// next gives a slot whose round has ended a task claimed ahead, if there is one. The slot does not wait for the report of the
// round; reported follows.
func (p *pool) next(s *slot) *assignment {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.shift(s)
	if a != nil {
		p.apart++
	}
	return a
}

// rest makes a slot idle, unless there is a task claimed ahead that it may begin.
func (p *pool) rest(s *slot, may bool) *assignment {
	p.mu.Lock()
	defer p.mu.Unlock()
	if may {
		if a := p.shift(s); a != nil {
			return a
		}
	}
	p.free = append(p.free, s)
	p.enter(s, idle)
	return nil
}

// shift gives a slot the oldest of the tasks claimed ahead, which begins now. The caller has the lock.
func (p *pool) shift(s *slot) *assignment {
	if len(p.ahead) == 0 || p.closed {
		return nil
	}
	a := p.ahead[0]
	if a.clock.now() > a.claimed.Task.Current.Running.Add(p.wait) {
		return nil
	}
	if len(p.free)+1 < slotsOf(a.claimed) {
		return nil
	}
	p.ahead = p.ahead[1:]
	p.begin(s, a)
	a.begin()
	return a
}

// reported notes that a report for which no slot waited has come to its end.
func (p *pool) reported() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apart--
	p.stir()
}

// supply is how many tasks there are ahead.
func (p *pool) supply() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ahead)
}

// keeps reports whether a task is among them.
func (p *pool) keeps(a *assignment) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.ahead, a)
}

// drop takes them all out, to be handed back; reported follows for each.
func (p *pool) drop() []*assignment {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.ahead
	p.ahead = nil
	p.apart += len(all)
	p.stir()
	return all
}

// quiet reports whether nothing runs, and nothing is on its way.
func (p *pool) quiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.phases {
		if at == executing || at == reporting {
			return false
		}
	}
	return p.apart+len(p.ahead) == 0
}

// close lets no slot go on if none executes anything, and reports that.
func (p *pool) close() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.phases {
		if at == executing {
			return false
		}
	}
	p.closed = true
	return true
}

// set notes what a slot does from now on.
func (p *pool) set(s *slot, to phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to == idle {
		p.free = append(p.free, s)
	}
	p.enter(s, to)
}

func (p *pool) enter(s *slot, to phase) {
	p.phases[s] = to
	for _, other := range p.lent[s] { // back from its task, which is over
		p.free = append(p.free, other)
		p.phases[other] = idle
	}
	delete(p.lent, s)
	p.stir()
}

// stir tells of a change.
func (p *pool) stir() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// count is how many slots are in one of the phases.
func (p *pool) count(phases ...phase) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, at := range p.phases {
		if slices.Contains(phases, at) {
			n++
		}
	}
	return n
}

// vacant is how many slots are idle, none if one of the tasks claimed takes several, and waits for them.
func (p *pool) vacant() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ahead) > 0 && slotsOf(p.ahead[0].claimed) > 1 {
		return 0
	}
	return len(p.free)
}

// byQueue counts the slots that have a task, by its queue.
func (p *pool) byQueue() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[string]int{}
	for s, at := range p.phases {
		if at != idle && at != resting && at != lent {
			n[p.queues[s]]++
		}
	}
	return n
}

// whileIdle calls a function for each slot that is idle, which begins nothing meanwhile.
func (p *pool) whileIdle(do func(*slot)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.free {
		do(s)
	}
}

// change is closed at the next change. Ask for it before looking at the pool.
func (p *pool) change() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// await waits until more slots are idle than that, and returns how many are; 0 if ctx ends.
func (p *pool) await(ctx context.Context, above int) int {
	for {
		change := p.change()
		if n := p.vacant(); n > above {
			return n
		}
		select {
		case <-change:
		case <-ctx.Done():
			return 0
		}
	}
}
