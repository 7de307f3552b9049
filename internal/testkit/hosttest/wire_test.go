package hosttest_test

import (
	"context"
	"net"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The far end reaches the hub over the wire only, and not while it is cut.
func TestWire(t *testing.T) {
	t.Parallel()
	w, err := hosttest.NewWire(t)
	if err != nil {
		t.Skip(err)
	}
	l, err := w.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if !reached(t, w, l.Addr()) {
		t.Error("the hub is not reached")
	}
	if err := w.Cut(); err != nil {
		t.Fatal(err)
	}
	if reached(t, w, l.Addr()) {
		t.Error("the hub is reached over a wire that is cut")
	}
	if err := w.Mend(); err != nil {
		t.Fatal(err)
	}
	if !reached(t, w, l.Addr()) {
		t.Error("the hub is not reached any more")
	}
}

// reached reports whether a program at the far end can connect.
func reached(t *testing.T, w *hosttest.Wire, to net.Addr) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	host, port, err := net.SplitHostPort(to.String())
	if err != nil {
		t.Fatal(err)
	}
	words := append(w.Enter(), "bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port)
	return exec.CommandContext(ctx, words[0], words[1:]...).Run() == nil
}

// A port belongs to one test, although nobody listens there yet.
func TestPort(t *testing.T) {
	t.Parallel()
	given := map[int]bool{}
	for range 500 {
		port := hosttest.Port(t)
		if given[port] {
			t.Fatalf("port %d was given twice", port)
		}
		given[port] = true
	}
}
