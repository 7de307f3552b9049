package process

import (
	"context"
	"sync"
	"syscall"
	"time"
)

// cause tells what made us terminate a group.
type cause int

const (
	causeNone cause = iota
	causeTimeout
	causeCancel
)

// group is the process group of one round. Signals go to it only while its
// leader is not reaped, since only then is its number certainly still ours.
type group struct {
	pid    int
	grace  time.Duration
	signal func(pid int, sig syscall.Signal) error
	// patience is how long a killed leader may take to end before it is given up.
	patience time.Duration
	// stuck is closed when patience is over.
	stuck chan struct{}

	mu      sync.Mutex
	over    bool
	cause   cause
	timeout *time.Timer
	next    *time.Timer
	detach  func() bool
}

// watch arms timeout and cancel. Neither costs a goroutine until it fires.
func (g *group) watch(ctx context.Context, timeout time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if timeout > 0 {
		g.timeout = time.AfterFunc(timeout, func() { g.terminate(causeTimeout) })
	}
	g.detach = context.AfterFunc(ctx, func() { g.terminate(causeCancel) })
}

// terminate asks the group to end; the first cause wins.
func (g *group) terminate(why cause) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over || g.cause != causeNone {
		return
	}
	g.cause = why
	if g.grace == 0 {
		g.killLocked()
		return
	}
	_ = g.signal(-g.pid, syscall.SIGTERM)
	g.next = time.AfterFunc(g.grace, g.kill)
}

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.killLocked()
	}
}

func (g *group) killLocked() {
	_ = g.signal(-g.pid, syscall.SIGKILL)
	g.next = time.AfterFunc(g.patience, func() { close(g.stuck) })
}

// finish kills what is left of the group once its leader has ended, and returns
// why it was terminated. The leader must not be reaped yet.
func (g *group) finish() cause {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	for _, timer := range []*time.Timer{g.timeout, g.next} {
		if timer != nil {
			timer.Stop()
		}
	}
	g.detach()
	_ = g.signal(-g.pid, syscall.SIGKILL)
	return g.cause
}

// reason is the cause of a group that may still be running.
func (g *group) reason() cause {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cause
}
