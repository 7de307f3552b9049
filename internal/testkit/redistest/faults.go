package redistest

import (
	"bytes"
	"slices"
	"strings"
)

// Match chooses commands by their words: name first, as the client sent them.
type Match func(args []string) bool

// Command matches commands by name, in any case: Command("EVALSHA").
func Command(name string) Match {
	return func(args []string) bool { return len(args) > 0 && strings.EqualFold(args[0], name) }
}

// Script matches the calls of one script, by its SHA1 or by its source text.
func Script(sha, source string) Match {
	return func(args []string) bool {
		switch {
		case len(args) < 2:
			return false
		case strings.EqualFold(args[0], "EVALSHA"):
			return strings.EqualFold(args[1], sha)
		case strings.EqualFold(args[0], "EVAL"):
			return args[1] == source
		default:
			return false
		}
	}
}

// Drop is one reply to lose.
type Drop struct {
	match Match
	done  chan struct{}
}

// Done is closed when Redis has carried the command out and the reply is lost.
// The connection is cut right after.
func (d *Drop) Done() <-chan struct{} { return d.done }

// Happened tells whether the reply has been lost.
func (d *Drop) Happened() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// DropReply loses the next reply to a command that matches: the command is
// forwarded, its reply swallowed and the connection cut. A NOSCRIPT reply is
// passed on, because then nothing was carried out. Several drops may be pending;
// each loses one reply.
func (p *Proxy) DropReply(match Match) *Drop {
	d := &Drop{match: match, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops = append(p.drops, d)
	return d
}

// take returns the oldest pending drop that wants this reply to be lost.
func (p *Proxy) take(args []string, reply []byte) *Drop {
	if bytes.HasPrefix(reply, []byte("-NOSCRIPT")) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.drops, func(d *Drop) bool { return d.match(args) })
	if i < 0 {
		return nil
	}
	d := p.drops[i]
	p.drops = slices.Delete(p.drops, i, i+1)
	return d
}

// Halt is a moment at which everything through a proxy comes to a stop.
type Halt struct {
	match Match
	after bool
	done  chan struct{}
}

// Done is closed when nothing passes any more.
func (h *Halt) Done() <-chan struct{} { return h.done }

// HaltBefore hangs the proxy, as [Proxy.Hang] does, as soon as a command that
// matches comes by, which does not reach Redis: its sender can be killed at that
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

// Refuse answers commands that match with an error, for example "LOADING Redis is
// loading the dataset in memory", until [Proxy.Accept]. They do not reach Redis.
// What it has been asked before is answered as it answers.
func (p *Proxy) Refuse(match Match, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused, p.because = match, text
}

// Accept ends [Proxy.Refuse].
func (p *Proxy) Accept() { p.Refuse(nil, "") }

// Everything matches every command but those that begin a connection.
func Everything(args []string) bool { return !Command("HELLO")(args) && !Command("SELECT")(args) }

// refusal is the error that a command gets, empty if it is carried out.
func (p *Proxy) refusal(args []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil || !p.refused(args) {
		return ""
	}
	return p.because
}

// Mute drops everything that comes from Redis on the open connections, which
// stay open; new ones work. So it is when a host on the way has forgotten them.
func (p *Proxy) Mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.muted.Store(true)
	}
}
