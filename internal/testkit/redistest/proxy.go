package redistest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Proxy stands between a client and a Redis server and makes the network fail on
// command. It understands RESP, so it can lose the reply of one chosen command:
// Redis has carried it out and the client cannot know.
//
// It follows requests and replies in order. A connection that subscribes to
// channels passes, but replies on it cannot be dropped.
type Proxy struct {
	listener net.Listener
	network  string
	upstream string
	gate     gate
	work     sync.WaitGroup

	mu      sync.Mutex
	drops   []*Drop
	stops   *Halt // nil for none
	links   map[*link]struct{}
	taken   int
	refuses bool
	refused Match
	because string
}

// NewProxy listens on a free loopback port and forwards every connection to
// upstream, an address of the network "tcp" or "unix". It is closed when the
// test ends.
func NewProxy(tb testing.TB, network, upstream string) *Proxy {
	tb.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("proxy: %v", err)
	}
	return NewProxyOn(tb, listener, network, upstream)
}

// NewProxyOn is [NewProxy] on a listener of the caller's, which it closes: one
// of another network namespace, for example.
func NewProxyOn(tb testing.TB, listener net.Listener, network, upstream string) *Proxy {
	tb.Helper()
	p := &Proxy{listener: listener, network: network, upstream: upstream, links: map[*link]struct{}{}}
	p.work.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Proxy returns a proxy in front of this server. See [NewProxy].
func (s *Server) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	return NewProxy(tb, "unix", s.Socket())
}

// Addr returns the address clients connect to, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut closes all connections. New ones are accepted at once.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Down closes all connections and drops new ones at once, as if Redis were
// away, until [Proxy.Up].
func (p *Proxy) Down() {
	p.mu.Lock()
	p.refuses = true
	p.mu.Unlock()
	p.Cut()
}

// Up accepts connections again after [Proxy.Down].
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = false
}

// Hang holds back everything in both directions, with connections open, until
// [Proxy.Release].
func (p *Proxy) Hang() { p.gate.shut() }

// Release lets go what [Proxy.Hang] held back.
func (p *Proxy) Release() { p.gate.open() }

// Links returns the number of open client connections.
func (p *Proxy) Links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Taken returns how many client connections there have been, open ones included.
func (p *Proxy) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.refuses = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.gate.open()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(client) })
	}
}

// serve connects one client with Redis until either side ends.
func (p *Proxy) serve(client net.Conn) {
	dialer := net.Dialer{Timeout: callLimit}
	server, err := dialer.DialContext(context.Background(), p.network, p.upstream)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{proxy: p, client: client, server: server}
	defer l.close()
	if !p.add(l) {
		return
	}
	defer p.remove(l)
	l.run()
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses {
		return false
	}
	p.links[l] = struct{}{}
	p.taken++
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
