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

// Drop is one reply that is to be lost.
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
