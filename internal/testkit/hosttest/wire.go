package hosttest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// ErrNotPermitted says that this process cannot make network namespaces: it
// takes root, and the programs ip and nsenter.
var ErrNotPermitted = errors.New("making network namespaces needs root, ip and nsenter")

// Ports that [ReservePort] gives lie below those that Linux gives to clients and to listeners that ask for any.
const (
	firstPort = 12000
	ports     = 18000
	portTries = 1000
)

// Port gives a port of the loopback address to the test alone, until it ends. The server that listens there may
// be stopped and started again.
func Port(tb testing.TB) int {
	tb.Helper()
	port, free, err := ReservePort()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(free)
	return port
}

// ReservePort is [Port] without a test: the port is the caller's until free is called, or the process ends. What marks
// it for other processes is the name of a socket.
func ReservePort() (port int, free func(), err error) {
	var mark net.Listener
	for range portTries {
		port = firstPort + mathrand.IntN(ports)
		if mark, err = listen("unix", fmt.Sprintf("@tdf-test-port-%d", port)); err != nil {
			continue
		}
		var trial net.Listener
		if trial, err = listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = trial.Close()
			return port, func() { _ = mark.Close() }, nil
		}
		_ = mark.Close()
	}
	return 0, nil, fmt.Errorf("looking for a free port: %w", err)
}

func listen(network, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), network, address) //nolint:wrapcheck // ReservePort does
}

// HubAddress is what the far end reaches the hub by, of the documentation
// network. Nothing else is reachable from either end.
const HubAddress = "192.0.2.1"

const (
	farAddress = "192.0.2.2"
	link       = "wire" // at either end
)

// Wire is two network namespaces, hub and far, and what connects them.
type Wire struct{ hub, far string }

// NewWire makes the namespaces, which are removed when the test ends. The error
// matches [ErrNotPermitted] where that cannot be done.
func NewWire(tb testing.TB) (*Wire, error) {
	tb.Helper()
	if os.Geteuid() != 0 {
		return nil, ErrNotPermitted
	}
	for _, program := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotPermitted, err)
		}
	}
	id := strings.ToLower(rand.Text()[:8])
	w := &Wire{"tdf-" + id + "-hub", "tdf-" + id + "-far"}
	for _, name := range []string{w.hub, w.far} {
		if err := ip("netns", "add", name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotPermitted, err)
		}
		tb.Cleanup(func() { _ = ip("netns", "del", name) })
	}
	return w, w.connect()
}

func (w *Wire) connect() error {
	steps := [][]string{
		{"link", "add", link, "netns", w.hub, "type", "veth", "peer", "name", link, "netns", w.far},
		{"-n", w.hub, "address", "add", HubAddress + "/30", "dev", link},
		{"-n", w.far, "address", "add", farAddress + "/30", "dev", link},
		{"-n", w.hub, "link", "set", link, "up"},
		{"-n", w.far, "link", "set", link, "up"},
	}
	for _, step := range steps {
		if err := ip(step...); err != nil {
			return err
		}
	}
	return nil
}

func ip(args ...string) error {
	if out, err := exec.CommandContext(context.Background(), "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Enter returns the words that, before those of a command, run it at the far
// end. The process that they start becomes the command.
func (w *Wire) Enter() []string {
	return []string{"nsenter", "--net=" + filepath.Join("/run/netns", w.far)}
}

// Cut takes the far end's link down.
func (w *Wire) Cut() error { return ip("-n", w.far, "link", "set", link, "down") }

// Mend takes the link up again.
func (w *Wire) Mend() error { return ip("-n", w.far, "link", "set", link, "up") }

// Listen makes a listener at the hub, on that port, or a free one for 0.
func (w *Wire) Listen(ctx context.Context, port int) (net.Listener, error) {
	type answer struct {
		listener net.Listener
		err      error
	}
	got := make(chan answer, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		l, err := w.listen(ctx, port)
		got <- answer{l, err}
	}()
	a := <-got
	return a.listener, a.err
}

// listen moves the calling thread to the hub.
func (w *Wire) listen(ctx context.Context, port int) (net.Listener, error) {
	space, err := os.Open(filepath.Join("/run/netns", w.hub))
	if err != nil {
		return nil, fmt.Errorf("opening the namespace: %w", err)
	}
	defer func() { _ = space.Close() }()
	if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("entering the namespace: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(HubAddress, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listening at the hub: %w", err)
	}
	return l, nil
}
