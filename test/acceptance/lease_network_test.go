package acceptance

import (
	"errors"
	"os/exec"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	sm "github.com/tdf-go/tdf/statemachine"
)

// wire is a host that can be cut off.
type wire struct{ *hosttest.Wire }

// newWire makes one. It skips the test where that is not permitted.
func newWire(t *testing.T) wire {
	t.Helper()
	n, err := hosttest.NewWire(t)
	if errors.Is(err, hosttest.ErrNotPermitted) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return wire{n}
}

func (n wire) cut(t *testing.T) {
	t.Helper()
	if err := n.Cut(); err != nil {
		t.Fatal(err)
	}
}

func (n wire) mend(t *testing.T) {
	t.Helper()
	if err := n.Mend(); err != nil {
		t.Fatal(err)
	}
}

// far starts a worker in the far namespace, which reaches Redis over the wire only.
func (w *world) far(t *testing.T, n wire, name string, set ...string) *daemon {
	t.Helper()
	return w.start(t, w.farCommand(t, n, 0, name, set...))
}

// farCommand is the worker of far, with Redis at a port of the hub, or a free one
// for 0.
func (w *world) farCommand(t *testing.T, n wire, port int, name string, set ...string) *exec.Cmd {
	t.Helper()
	l, err := n.Listen(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	proxy := redistest.NewProxyOn(t, l, "unix", w.Server.Socket())
	words := slices.Concat(n.Enter(), []string{program(t, "tdf-worker")}, w.reaching(t, name, proxy.Addr(), set...))
	command := exec.Command(words[0], words[1:]...)
	command.Dir = w.own(t, name)
	return command
}

// C1 with a real link that goes down and comes back.
func TestLinkDown(t *testing.T) {
	t.Parallel()
	n := newWire(t)
	w := newWorld(t)
	w.cutOff(t, w.far(t, n, "cut", "slots=4"), func() { n.cut(t) }, func() { n.mend(t) })
}

// A5: a host with eight tasks loses its whole network and never gets it back.
func TestHostGone(t *testing.T) {
	t.Parallel()
	n := newWire(t)
	w := newWorld(t)
	w.leasing(t)
	dies := w.far(t, n, "dies", "slots=8")
	ids, l := w.eight(t, "dies")
	w.worker(t, "other", "slots=8")
	at := w.redisNow(t)
	n.cut(t)
	w.allBack(t, ids, at, shortLease+2*sm.Second)
	w.noneLeft(t, "dies")
	w.finishElsewhere(t, ids, l)
	w.kill(t, dies) // it would wait for its network
}
