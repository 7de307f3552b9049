package redistest

import (
	"bufio"
	"net"
	"sync"
)

// link is one client connection and its twin to Redis.
type link struct {
	proxy          *Proxy
	client, server net.Conn

	mu      sync.Mutex
	pending [][]string // requests without a reply yet, oldest first
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
		l.proxy.gate.pass()
		l.push(request)
		if _, err := l.server.Write(request.raw); err != nil {
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
		if drop := l.lost(reply); drop != nil {
			close(drop.done) // first, so that a client that sees the cut finds Done closed
			return
		}
		if _, err := l.client.Write(reply.raw); err != nil {
			return
		}
	}
}

func (l *link) push(request value) {
	args := make([]string, 0, len(request.elems))
	for _, e := range request.elems {
		args = append(args, string(e.text))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, args)
}

// lost returns the drop that swallows this reply, nil for none. Push messages
// and attributes of RESP3 answer no request.
func (l *link) lost(reply value) *Drop {
	if reply.kind == '>' || reply.kind == '|' {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return nil
	}
	args := l.pending[0]
	l.pending = l.pending[1:]
	return l.proxy.take(args, reply.raw)
}
