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

// Fault is what happens once to a command that matches.
type Fault struct {
	match Match
	done  chan struct{}
}

// Done is closed when it has happened: [Proxy.DropReply] has lost the reply, and
// cuts the connection right after; or, after [Proxy.HaltBefore] and
// [Proxy.HaltAfter], nothing passes any more.
func (f *Fault) Done() <-chan struct{} { return f.done }

// Happened tells whether it has happened.
func (f *Fault) Happened() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// DropReply loses the next reply to a command that matches: the command is
// forwarded, its reply swallowed and the connection cut. A NOSCRIPT reply is
// passed on, because then nothing was carried out. Several drops may be pending;
// each loses one reply.
func (p *Proxy) DropReply(match Match) *Fault {
	d := &Fault{match, make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops = append(p.drops, d)
	return d
}

// take returns the oldest pending drop that wants this reply to be lost.
func (p *Proxy) take(args []string, reply []byte) *Fault {
	if bytes.HasPrefix(reply, []byte("-NOSCRIPT")) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.drops, func(d *Fault) bool { return d.match(args) })
	if i < 0 {
		return nil
	}
	d := p.drops[i]
	p.drops = slices.Delete(p.drops, i, i+1)
	return d
}

// HaltBefore hangs the proxy, as [Proxy.Hang] does, as soon as a command that
// matches comes by, which does not reach Redis: its sender can be killed at that
// very moment. [Proxy.Bury] is for what is left then.
func (p *Proxy) HaltBefore(match Match) *Fault { return p.halt(match, false) }

// HaltAfter is HaltBefore when Redis has carried the command out, and the client has
// no reply yet. Redis has not carried out what it answers with NOSCRIPT.
func (p *Proxy) HaltAfter(match Match) *Fault { return p.halt(match, true) }

func (p *Proxy) halt(match Match, after bool) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop, p.stopAfter = &Fault{match, make(chan struct{})}, after
	return p.stop
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
	h := p.stop
	if h == nil || p.stopAfter != (reply != nil) || bytes.HasPrefix(reply, []byte("-NOSCRIPT")) || !h.match(args) {
		return
	}
	p.stop = nil
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
