package redistest

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
)

// link is one client connection and its twin to Redis.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	muted          atomic.Bool

	mu      sync.Mutex
	pending []asked // requests without a reply yet, oldest first
}

// asked is a request that was forwarded.
type asked struct {
	args []string
	// answer is what the client gets in place of the reply; empty: the reply.
	answer string
}

// run forwards in both directions until one of them ends.
func (l *link) run() {
	var requests sync.WaitGroup
	requests.Go(l.requests)
	l.replies()
	l.close()
	requests.Wait()
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// requests forwards commands to Redis and notes them, so that each reply can be
// told whose it is.
func (l *link) requests() {
	defer l.close()
	r := bufio.NewReader(l.client)
	for {
		request, err := readValue(r)
		if err != nil {
			return
		}
		args := words(request)
		l.proxy.reached(args, nil)
		l.proxy.gate.pass()
		if _, err := l.server.Write(l.push(request.raw, args)); err != nil {
			return
		}
	}
}

// replies forwards replies until one is to be lost.
func (l *link) replies() {
	r := bufio.NewReader(l.server)
	for {
		reply, err := readValue(r)
		if err != nil {
			return
		}
		l.proxy.gate.pass()
		answer, drop := l.answer(reply)
		if drop != nil {
			close(drop.done) // first, so that a client that sees the cut finds Done closed
			return
		}
		l.proxy.gate.pass() // this may have been the reply to halt at
		if l.muted.Load() {
			continue
		}
		if _, err := l.client.Write(answer); err != nil {
			return
		}
	}
}

// words are those of a request.
func words(request value) []string {
	args := make([]string, 0, len(request.elems))
	for _, e := range request.elems {
		args = append(args, string(e.text))
	}
	return args
}

// push notes a request and returns what to send: one that is refused does not
// reach Redis, but something must, so that the answers keep their order.
func (l *link) push(raw []byte, args []string) []byte {
	a := asked{args: args}
	if a.answer = l.proxy.refusal(a.args); a.answer != "" {
		raw = encode("ECHO", "refused")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, a)
	return raw
}

// answer returns what the client gets for a reply, or the drop that swallows it.
// Push messages and attributes of RESP3 answer no request.
func (l *link) answer(reply value) ([]byte, *Drop) {
	if reply.kind == '>' || reply.kind == '|' {
		return reply.raw, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return reply.raw, nil
	}
	a := l.pending[0]
	l.pending = l.pending[1:]
	if a.answer != "" {
		return []byte("-" + a.answer + "\r\n"), nil
	}
	l.proxy.reached(a.args, reply.raw)
	return reply.raw, l.proxy.take(a.args, reply.raw)
}
