package worker

import (
	"context"
	"slices"
	"sync"
)

// phase is what a slot does.
type phase int

const (
	idle      phase = iota
	executing       // a program or handler is at work
	reporting       // its result is on the way
	resting         // pausing after a round, as configured
	stuck           // its program or handler does not end
)

// pool hands out the slots of a worker.
type pool struct {
	mu     sync.Mutex
	phases map[*slot]phase
	queues map[*slot]string // of the task that the slot had last
	free   []*slot
	closed bool
	// changed is closed, and replaced, at each change.
	changed chan struct{}
}

func newPool(slots []*slot) *pool {
	p := &pool{phases: map[*slot]phase{}, queues: map[*slot]string{}, changed: make(chan struct{})}
	for _, s := range slices.Backward(slots) { // slot 0 is handed out first
		p.phases[s] = idle
		p.free = append(p.free, s)
	}
	return p
}

// take returns an idle slot for a task of a queue, nil if there is none.
func (p *pool) take(queue string) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return nil
	}
	s := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.queues[s] = queue
	p.enter(s, executing)
	return s
}

// keep lets a slot that has reported go on with a task of a queue, unless the pool is closed.
func (p *pool) keep(s *slot, queue string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.queues[s] = queue
	p.enter(s, executing)
	return true
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
	close(p.changed)
	p.changed = make(chan struct{})
}

// count is how many slots are in one of the phases.
func (p *pool) count(phases ...phase) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, at := range p.phases {
		for _, wanted := range phases {
			if at == wanted {
				n++
			}
		}
	}
	return n
}

// byQueue counts the slots that have a task, by its queue.
func (p *pool) byQueue() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[string]int{}
	for s, at := range p.phases {
		if at != idle && at != resting {
			n[p.queues[s]]++
		}
	}
	return n
}

// change is closed at the next change. Ask for it before looking at the pool.
func (p *pool) change() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// await waits until a slot is idle and returns how many are; 0 if ctx ends.
func (p *pool) await(ctx context.Context) int {
	for {
		change := p.change()
		if n := p.count(idle); n > 0 {
			return n
		}
		select {
		case <-change:
		case <-ctx.Done():
			return 0
		}
	}
}
