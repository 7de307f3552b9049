package redistest

import "bytes"

// Halt is a moment at which everything through a proxy comes to a stop.
type Halt struct {
	match Match
	after bool
	done  chan struct{}
}

// Done is closed when nothing passes any more.
func (h *Halt) Done() <-chan struct{} { return h.done }

// HaltBefore hangs the proxy, as [Proxy.Hang] does, as soon as a command that
// matches comes by, which does not reach Redis: whoever sent it can be killed at that
// very moment. [Proxy.Bury] is for what is left then.
func (p *Proxy) HaltBefore(match Match) *Halt { return p.halt(match, false) }

// HaltAfter is HaltBefore when Redis has carried the command out, and the client has
// no reply yet. Redis has not carried out what it answers with NOSCRIPT.
func (p *Proxy) HaltAfter(match Match) *Halt { return p.halt(match, true) }

func (p *Proxy) halt(match Match, after bool) *Halt {
	h := &Halt{match: match, after: after, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops = h
	return h
}

// Bury closes all connections together with what was held back on them, which is never
// sent, and drops new ones until [Proxy.Up].
func (p *Proxy) Bury() {
	p.Down()
	p.Release()
}

// reached hangs the proxy if this is the command to stop at; reply is nil before it.
func (p *Proxy) reached(args []string, reply []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.stops
	if h == nil || h.after != (reply != nil) || bytes.HasPrefix(reply, []byte("-NOSCRIPT")) || !h.match(args) {
		return
	}
	p.stops = nil
	p.gate.shut()
	close(h.done)
}
