package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
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

	mu        sync.Mutex
	drops     []*Fault
	stop      *Fault // nil for none
	stopAfter bool   // Redis has answered
	links     map[*link]struct{}
	taken     int
	refuses   bool
	refused   Match
	because   string
}

// Proxy returns a proxy in front of this server, which listens on a free loopback
// port until the test ends.
func (s *Server) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("proxy: %v", err)
	}
	return NewProxyOn(tb, listener, "unix", s.Socket())
}

// NewProxyOn forwards every connection of a listener, one of another network
// namespace for example, to upstream, an address of the network "tcp" or "unix".
// It closes the listener when the test ends.
func NewProxyOn(tb testing.TB, listener net.Listener, network, upstream string) *Proxy {
	tb.Helper()
	p := &Proxy{listener: listener, network: network, upstream: upstream, links: map[*link]struct{}{}}
	p.work.Go(p.accept)
	tb.Cleanup(p.close)
	return p
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

// replies forwards replies up to the one to lose.
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
		raw = []byte("*1\r\n$4\r\nPING\r\n")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, a)
	return raw
}

// answer returns what the client gets for a reply, or the drop that swallows it.
// Push messages and attributes of RESP3 answer no request.
func (l *link) answer(reply value) ([]byte, *Fault) {
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

// gate is a door that is open at first.
type gate struct {
	mu   sync.Mutex
	wait chan struct{} // nil while open, closed by open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wait == nil {
		g.wait = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wait != nil {
		close(g.wait)
		g.wait = nil
	}
}

// pass blocks while the gate is shut.
func (g *gate) pass() {
	g.mu.Lock()
	wait := g.wait
	g.mu.Unlock()
	if wait != nil {
		<-wait
	}
}

// value is one RESP2 or RESP3 value with the bytes it was read from.
type value struct {
	kind  byte
	raw   []byte
	text  []byte  // simple and bulk values
	elems []value // aggregates
}

// errProtocol is returned for bytes that are not RESP.
var errProtocol = errors.New("not RESP")

// readValue reads one whole value.
func readValue(r *bufio.Reader) (value, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return value{}, err //nolint:wrapcheck // io.EOF must stay io.EOF
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return value{}, fmt.Errorf("%w: %q", errProtocol, line)
	}
	v := value{kind: line[0], raw: line, text: line[1 : len(line)-2]}
	switch v.kind {
	case '$', '=', '!':
		return readBulk(r, v)
	case '*', '~', '>':
		return readElems(r, v, 1)
	case '%', '|':
		return readElems(r, v, 2)
	default:
		return v, nil
	}
}

func readBulk(r *bufio.Reader, v value) (value, error) {
	n, err := length(v)
	if err != nil || n < 0 {
		return v, err
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(r, body); err != nil {
		return v, fmt.Errorf("reading %d bytes: %w", n, err)
	}
	v.raw = append(v.raw, body...)
	v.text = body[:n]
	return v, nil
}

func readElems(r *bufio.Reader, v value, each int) (value, error) {
	n, err := length(v)
	if err != nil || n < 0 {
		return v, err
	}
	for range n * each {
		e, err := readValue(r)
		if err != nil {
			return v, err
		}
		v.raw = append(v.raw, e.raw...)
		v.elems = append(v.elems, e)
	}
	return v, nil
}

func length(v value) (int, error) {
	n, err := strconv.Atoi(string(v.text))
	if err != nil {
		return 0, fmt.Errorf("%w: length %q", errProtocol, v.text)
	}
	return n, nil
}
